package process_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/daemon/journal"
	"github.com/isthmus/isthmus/envd/daemon/process"
	"github.com/isthmus/isthmus/envd/daemon/spawn"
	wire "github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// patience bounds what a test waits for; nothing waits that long when all is well.
const patience = 30 * time.Second

// The users of the tests: root with a home of its own, and a stranger in two groups.
const (
	passwd = "root:x:0:0::%HOME%:/bin/bash\nguest:x:12345:12346:Guest:/:/bin/sh\n"
	group  = "root:x:0:\nguest:x:12346:\nextra:x:12347:guest,other\n"
)

// harness is a running service and ways to call it.
type harness struct {
	url, home string
	journal   *journal.Journal
	users     *identity.Resolver
}

func start(t *testing.T, environment map[string]string) *harness {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644))
	}
	write("passwd", strings.ReplaceAll(passwd, "%HOME%", home))
	write("group", group)

	require.NoError(t, spawn.Seal())
	h := &harness{home: home, journal: journal.New()}
	h.users = identity.NewResolver(identity.NewDirectory(root), "root", "")
	ctx, cancel := context.WithCancel(context.Background())
	reaper := spawn.NewReaper(false)
	reaped := make(chan struct{})
	go func() { defer close(reaped); reaper.Run(ctx) }()
	service := process.New(process.Config{
		Users: h.users, Reaper: reaper, Journal: h.journal,
		Environment: func() map[string]string { return environment },
	})
	_, rpc := processconnect.NewProcessHandler(service)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as, err := h.users.Attach(r)
		if err != nil {
			_ = connect.NewErrorWriter().Write(w, r, err)
			return
		}
		rpc.ServeHTTP(w, as)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	h.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		service.Close()
		cancel()
		<-reaped
	})
	return h
}

// client calls over HTTP/1.1 or h2c, with JSON or binary messages.
func (h *harness) client(t *testing.T, h2, json bool) processconnect.ProcessClient {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: new(net.Dialer).DialContext}
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
	t.Cleanup(transport.CloseIdleConnections)
	// As the SDKs: streams are never compressed.
	options := []connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil)}
	if json {
		options = append(options, connect.WithProtoJSON())
	}
	return processconnect.NewProcessClient(&http.Client{Transport: transport}, h.url, options...)
}

// sdk is a client as the SDKs are: JSON over HTTP/1.1.
func (h *harness) sdk(t *testing.T) processconnect.ProcessClient { return h.client(t, false, true) }

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// shell is a start of /bin/sh -c as the SDKs send one: without stdin.
func shell(script string) *wire.StartRequest {
	return &wire.StartRequest{Process: &wire.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}, Stdin: new(bool)}
}

func withStdin(m *wire.StartRequest) *wire.StartRequest {
	m.Stdin = nil
	return m
}

func withPTY(m *wire.StartRequest, cols, rows uint32) *wire.StartRequest {
	m.Pty = &wire.PTY{Size: &wire.PTY_Size{Cols: cols, Rows: rows}}
	return m
}

func byPID(pid uint32) *wire.ProcessSelector {
	return &wire.ProcessSelector{Selector: &wire.ProcessSelector_Pid{Pid: pid}}
}

func byTag(tag string) *wire.ProcessSelector {
	return &wire.ProcessSelector{Selector: &wire.ProcessSelector_Tag{Tag: tag}}
}

func stdin(text string) *wire.ProcessInput {
	return &wire.ProcessInput{Input: &wire.ProcessInput_Stdin{Stdin: []byte(text)}}
}

func keys(text string) *wire.ProcessInput {
	return &wire.ProcessInput{Input: &wire.ProcessInput_Pty{Pty: []byte(text)}}
}

// events is one stream as a client sees it.
type events struct {
	next  func() (*wire.ProcessEvent, error)
	close func()
	pid   uint32

	stdout, stderr, pty string
	keepalives          int
	end                 *wire.ProcessEvent_EndEvent
	largest             int
}

// begin starts a program and takes its start event. The context's end is not sent as a time limit.
func begin(t *testing.T, c processconnect.ProcessClient, m *wire.StartRequest, headers ...string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req := connect.NewRequest(m)
	setHeaders(req.Header(), headers)
	s, err := c.Start(ctx, req)
	require.NoError(t, err)
	return opened(t, cancel, func() (*wire.ProcessEvent, error) {
		if !s.Receive() {
			return nil, streamEnd(s.Err())
		}
		return s.Msg().GetEvent(), nil
	})
}

// attach connects to a process and takes its start event.
func attach(t *testing.T, c processconnect.ProcessClient, to *wire.ProcessSelector, headers ...string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req := connect.NewRequest(&wire.ConnectRequest{Process: to})
	setHeaders(req.Header(), headers)
	s, err := c.Connect(ctx, req)
	require.NoError(t, err)
	return opened(t, cancel, func() (*wire.ProcessEvent, error) {
		if !s.Receive() {
			return nil, streamEnd(s.Err())
		}
		return s.Msg().GetEvent(), nil
	})
}

func opened(t *testing.T, cancel func(), next func() (*wire.ProcessEvent, error)) *events {
	t.Helper()
	e := &events{next: next, close: cancel}
	first, err := next()
	require.NoError(t, err)
	require.NotNil(t, first.GetStart(), "the first event must be the start")
	e.pid = first.GetStart().GetPid()
	require.NotZero(t, e.pid)
	return e
}

func setHeaders(h http.Header, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
}

var errClean = errors.New("the stream ended in order")

func streamEnd(err error) error {
	if err == nil {
		return errClean
	}
	return err
}

// take reads one event into the record.
func (e *events) take() error {
	event, err := e.next()
	if err != nil {
		return err
	}
	switch {
	case event.GetData() != nil:
		d := event.GetData()
		e.stdout += string(d.GetStdout())
		e.stderr += string(d.GetStderr())
		e.pty += string(d.GetPty())
		e.largest = max(e.largest, len(d.GetStdout()), len(d.GetStderr()), len(d.GetPty()))
	case event.GetEnd() != nil:
		e.end = event.GetEnd()
	case event.GetKeepalive() != nil:
		e.keepalives++
	}
	return nil
}

// until reads until the condition holds.
func (e *events) until(t *testing.T, holds func() bool) *events {
	t.Helper()
	timer := time.AfterFunc(patience, e.close)
	defer timer.Stop()
	for !holds() {
		require.NoError(t, e.take(), "after %+v", e)
	}
	return e
}

// finish reads to the end, which must be an end event and a clean end of the stream.
func (e *events) finish(t *testing.T) *events {
	t.Helper()
	e.until(t, func() bool { return e.end != nil })
	require.Equal(t, errClean, e.take(), "nothing follows the end")
	return e
}

// fail reads until the stream fails and returns how.
func (e *events) fail(t *testing.T) *connect.Error {
	t.Helper()
	timer := time.AfterFunc(patience, e.close)
	defer timer.Stop()
	for {
		if err := e.take(); err != nil {
			var failed *connect.Error
			require.ErrorAs(t, err, &failed)
			return failed
		}
	}
}

// refused starts or connects where a failure is expected.
func refused(t *testing.T, c processconnect.ProcessClient, m *wire.StartRequest, headers ...string) *connect.Error {
	t.Helper()
	req := connect.NewRequest(m)
	setHeaders(req.Header(), headers)
	s, err := c.Start(t.Context(), req) // A context with an end would send a time limit of its own.
	if err == nil {
		require.False(t, s.Receive(), "no event may come: %v", s.Msg())
		err = s.Err()
	}
	var failed *connect.Error
	require.ErrorAs(t, err, &failed)
	return failed
}
