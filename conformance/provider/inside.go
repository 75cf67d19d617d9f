package provider

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// inside is the way to the envd of one box, as the gateway has it.
type inside struct {
	base   string
	header http.Header
	// transport opens connections as the endpoint says.
	transport *http.Transport
}

// reach finds the way to a box's envd.
func (s *Suite) reach(t T, id string) *inside {
	t.Helper()
	endpoint, err := s.provider.Reach(t.Context(), id)
	must(t, err, "reach")
	in := &inside{base: strings.TrimSuffix(endpoint.URL.String(), "/"), header: endpoint.Header.Clone(), transport: &http.Transport{DisableCompression: true}}
	if in.header == nil {
		in.header = http.Header{}
	}
	if endpoint.Dial != nil {
		in.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return endpoint.Dial(ctx) }
	}
	if s.powers.Native == nil {
		transport, _ := s.harness.Secrets(id)
		in.header.Set(envd.HeaderTransport, transport)
		return in
	}
	inner, err := s.powers.Native.Native(t.Context(), id)
	must(t, err, "native")
	if inner.EnvdToken != "" {
		in.header.Set("X-Access-Token", inner.EnvdToken)
	}
	return in
}

// RoundTrip sends a request with the headers of the endpoint.
func (in *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range in.header {
		r.Header[name] = values
	}
	return in.transport.RoundTrip(r)
}

func (in *inside) close() { in.transport.CloseIdleConnections() }

// health returns the status that envd answers with.
func (in *inside) health(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.base+"/health", nil)
	if err != nil {
		return 0, err
	}
	response, err := in.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// result is how a command ended.
type result struct {
	Code           int
	Stdout, Stderr string
}

// sh runs a shell command in a box as root.
func (in *inside) sh(ctx context.Context, command string) (result, error) {
	client := processconnect.NewProcessClient(&http.Client{Transport: in}, in.base)
	stream, err := client.Start(ctx, asRoot(&process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", command}}}))
	if err != nil {
		return result{}, err
	}
	defer func() { _ = stream.Close() }()
	r := result{Code: -1}
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		r.Stdout += string(event.GetData().GetStdout())
		r.Stderr += string(event.GetData().GetStderr())
		if end := event.GetEnd(); end != nil {
			r.Code = int(end.GetExitCode())
		}
	}
	return r, stream.Err()
}

// runs fails the case unless a command in the box ends as wanted.
func (s *Suite) runs(t T, id, command string, want result) {
	t.Helper()
	in := s.reach(t, id)
	defer in.close()
	got, err := in.sh(t.Context(), command)
	must(t, err, "run a command")
	equal(t, want, got, command)
}
