package provider

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
)

// deadline waits for a box to end by itself.
func deadline(t T, s *Suite) {
	spec, done := s.create(t, func(spec *adapters.Spec) { spec.Envd.Deadline = time.Now().Add(s.harness.Soon) })
	defer done()
	eventually(t, s.harness.Soon+s.harness.Patience, func() bool { return s.over(t, spec.BoxID) }, "the box ends at its deadline")
}

// extend moves deadlines both ways: the box that was extended outlives the one that was not.
func extend(t T, s *Suite) {
	first, done := s.create(t)
	defer done()
	short, done := s.create(t, func(spec *adapters.Spec) { spec.Envd.Deadline = time.Now().Add(s.harness.Soon) })
	defer done()
	must(t, s.powers.Extender.Extend(t.Context(), short.BoxID, time.Now().Add(time.Hour)), "extend")
	must(t, s.powers.Extender.Extend(t.Context(), short.BoxID, time.Now().Add(time.Hour)), "extend again")
	must(t, s.powers.Extender.Extend(t.Context(), first.BoxID, time.Now().Add(s.harness.Soon)), "shorten")
	eventually(t, s.harness.Soon+s.harness.Patience, func() bool { return s.over(t, first.BoxID) }, "the box ends at its new deadline")
	that(t, !s.over(t, short.BoxID), "a box that was extended has ended")
}

// endSeen waits for the news of a box's end.
func endSeen(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	ended, err := s.powers.Watcher.Ended(spec.BoxID)
	must(t, err, "ended")
	select {
	case <-ended:
		t.Errorf("a box that lives is said to have ended")
	default:
	}
	s.destroy(t, spec.BoxID)
	select {
	case <-ended:
	case <-time.After(s.harness.Patience):
		t.Errorf("nobody says that the box has ended")
	}
}

// metrics takes one sample.
func metrics(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	var sample adapters.Sample
	eventually(t, s.harness.Patience, func() bool {
		var err error
		sample, err = s.powers.Meter.Measure(t.Context(), spec.BoxID)
		if err != nil {
			refused(t, adapters.KindUnavailable, err, "measure before there is a sample")
		}
		return err == nil
	}, "the box is measured")
	that(t, time.Since(sample.At).Abs() < time.Minute, "the sample is of %s", sample.At)
	that(t, sample.CPUCount > 0 && sample.CPUTime >= 0, "processors: %+v", sample)
	that(t, sample.MemTotal > 0 && sample.MemUsed >= 0 && sample.MemUsed <= sample.MemTotal, "memory: %+v", sample)
	that(t, sample.DiskTotal > 0 && sample.DiskUsed >= 0 && sample.DiskUsed <= sample.DiskTotal, "disk: %+v", sample)
}

// journal reads what a command left in it.
func journal(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	s.runs(t, spec.BoxID, "exit 7", result{Code: 7})
	var last uint64
	eventually(t, s.harness.Patience, func() bool {
		entries, err := s.powers.Journal.Entries(t.Context(), spec.BoxID, 0)
		must(t, err, "entries")
		for i, entry := range entries {
			that(t, entry.Number > last || i == 0, "entries are not in order")
			last = entry.Number
		}
		return len(entries) > 0
	}, "the command is in the journal")
	later, err := s.powers.Journal.Entries(t.Context(), spec.BoxID, last)
	must(t, err, "entries")
	for _, entry := range later {
		that(t, entry.Number > last, "an entry came twice")
	}
}

// guarded comes by the endpoint without the box's secret: the address alone is worth nothing.
func guarded(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	in := s.reach(t, spec.BoxID)
	defer in.close()
	for _, secret := range []string{"", "wrong"} {
		in.header.Set(envd.HeaderTransport, secret)
		status, err := in.health(t.Context())
		must(t, err, "health without the secret")
		equal(t, http.StatusUnauthorized, status, "health without the secret")
	}
}

// ports reaches ports of the box through the tunnel.
func ports(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	endpoint, err := s.provider.Reach(t.Context(), spec.BoxID)
	must(t, err, "reach")
	transport, control := s.harness.Secrets(spec.BoxID)
	header := endpoint.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(envd.HeaderTransport, transport)
	to := tunnel.Target{URL: endpoint.URL, Header: header, Dial: endpoint.Dial, Control: control}
	_, err = tunnel.Dial(t.Context(), to, 59999)
	that(t, err == tunnel.ErrPortClosed, "a port on which nothing listens: %v", err) //nolint:errorlint // it is documented to be this one

	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := tunnel.Dial(ctx, to, envd.Port)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	client := &http.Transport{DialContext: dial}
	defer client.CloseIdleConnections()
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://inside/health", nil)
		must(t, err, "a request")
		response, err := client.RoundTrip(request)
		must(t, err, "a request through the tunnel to envd's own port inside")
		must(t, response.Body.Close(), "its answer")
		equal(t, http.StatusNoContent, response.StatusCode, "health through the tunnel")
	}
}

// internetOff makes a box without the internet.
func internetOff(t T, s *Suite) {
	_, done := s.create(t, func(spec *adapters.Spec) { spec.Network.Internet = false })
	done()
}

// internetStays asks for what the provider cannot do: it must refuse, and never make an open box.
func internetStays(t T, s *Suite) {
	spec := s.spec(func(spec *adapters.Spec) { spec.Network.Internet = false })
	_, err := s.provider.Create(t.Context(), spec)
	refused(t, adapters.KindUnsupported, err, "a box without the internet")
	s.absent(t, spec)
}

// boots brings a file into a box and runs programs there.
func boots(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	b := s.powers.Bootable
	text := strings.Repeat("a line of a file\n", 100_000)
	for _, content := range []string{"first", text} {
		must(t, b.Put(t.Context(), spec.BoxID, "/tmp/new/folder/file", 0o640, strings.NewReader(content)), "put")
	}
	process, err := b.Exec(t.Context(), spec.BoxID, []string{"/bin/sh", "-c", `stat -c %a "$0"; cat "$0" -; exit 5`, "/tmp/new/folder/file"})
	must(t, err, "exec")
	defer func() { _ = process.Close() }()
	go func() {
		_, _ = io.WriteString(process, "and its input\n")
		_ = process.CloseWrite()
	}()
	out, err := io.ReadAll(process)
	must(t, err, "read the output")
	that(t, bytes.Equal([]byte("640\n"+text+"and its input\n"), out), "the output has %d bytes", len(out))
	code, err := process.Wait(t.Context())
	must(t, err, "wait")
	equal(t, 5, code, "the exit code")
	_, err = b.Exec(t.Context(), spec.BoxID, []string{"/no/such/program"})
	refused(t, adapters.KindPrecondition, err, "exec of a program that is not there")
}

// native looks at a box as its own server has it.
func native(t T, s *Suite) {
	spec, done := s.create(t, func(spec *adapters.Spec) { spec.Envd.AccessToken = "asked-for" })
	defer done()
	inner, err := s.powers.Native.Native(t.Context(), spec.BoxID)
	must(t, err, "native")
	that(t, inner.ID != "" && inner.EnvdVersion != "", "no id or version")
	that(t, inner.EnvdToken != "", "a secure box has no token")
	that(t, inner.Port != nil && inner.Port(envd.Port).URL != nil && inner.Port(8080).URL != nil, "no way to its ports")
}

// restart stops the adapter and goes on with another one, as a facade does that is restarted: boxes and what
// runs in them stay.
func restart(t T, s *Suite) {
	spec, _ := s.create(t)
	defer func() { s.destroy(t, spec.BoxID) }()
	s.runs(t, spec.BoxID, "echo kept >/tmp/kept", result{})
	must(t, s.halt(), "stop the adapter")
	again, err := s.harness.Reopen()
	must(t, err, "open the adapter again")
	s.start(again)
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "get")
	s.same(t, spec, box)
	s.runs(t, spec.BoxID, "cat /tmp/kept", result{Stdout: "kept\n"})
}
