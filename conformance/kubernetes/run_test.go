package kubernetes

import (
	"context"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// runs runs a command in a sandbox to its end.
func (f *facade) runs(id string) { f.says(id, "/bin/true") }

// says runs a command as root in a sandbox to its end, which must be good, and returns its output.
func (f *facade) says(id, command string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	stream, err := f.begin(ctx, id, command, args...)
	require.NoError(f.t, err)
	defer func() { _ = stream.Close() }()
	var out strings.Builder
	var end *process.ProcessEvent_EndEvent
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		out.Write(event.GetData().GetStdout())
		if event.GetEnd() != nil {
			end = event.GetEnd()
		}
	}
	require.NoError(f.t, stream.Err())
	require.NotNil(f.t, end, "the command did not end")
	require.Zero(f.t, end.GetExitCode(), "%s %v: %s", command, args, end.GetError())
	return out.String()
}

// begins starts a text of the shell as root in a sandbox, and does not wait for its end.
func (f *facade) begins(id, text string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	stream, err := f.begin(ctx, id, "/bin/bash", "-c", text)
	require.NoError(f.t, err)
	defer func() { _ = stream.Close() }()
	require.True(f.t, stream.Receive(), "the command did not start: %v", stream.Err())
	require.NotNil(f.t, stream.Msg().GetEvent().GetStart())
}

func (f *facade) begin(ctx context.Context, id, command string, args ...string) (*connect.ServerStreamForClient[process.StartResponse], error) {
	client := processconnect.NewProcessClient(http.DefaultClient, f.url)
	request := connect.NewRequest(&process.StartRequest{Process: &process.ProcessConfig{Cmd: command, Args: args}})
	request.Header().Set("E2b-Sandbox-Id", id)
	request.Header().Set("E2b-Sandbox-Port", "49983")
	request.Header().Set("X-Access-Token", f.token)
	basic := http.Request{Header: request.Header()}
	basic.SetBasicAuth("root", "")
	return client.Start(ctx, request)
}
