package daemon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon"
	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// overSocket is a client as the facade is: over a unix socket.
func overSocket(b *testing.B, options ...connect.ClientOption) processconnect.ProcessClient {
	b.Helper()
	options = append(options, connect.WithAcceptCompression("gzip", nil, nil))
	return processconnect.NewProcessClient(socketClient(b), "http://envd", options...)
}

// socketClient starts a daemon.
func socketClient(b *testing.B) *http.Client {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "e")
	l, err := net.Listen("unix", socket)
	require.NoError(b, err)
	d, err := daemon.New(envd.Config{DefaultUser: "root"}, daemon.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Serve(ctx, l, nil)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	b.Cleanup(client.CloseIdleConnections)
	return client
}

func command(b *testing.B, c processconnect.ProcessClient, cmd string, args ...string) (output int64) {
	b.Helper()
	no := false
	s, err := c.Start(b.Context(), connect.NewRequest(&process.StartRequest{
		Process: &process.ProcessConfig{Cmd: cmd, Args: args}, Stdin: &no,
	}))
	require.NoError(b, err)
	for s.Receive() {
		output += int64(len(s.Msg().GetEvent().GetData().GetStdout()))
	}
	require.NoError(b, s.Err())
	return output
}

func BenchmarkStart(b *testing.B) {
	c := overSocket(b, connect.WithProtoJSON())
	for b.Loop() {
		command(b, c, "/bin/true")
	}
}

// BenchmarkFloor is what the machine needs for a process alone, for comparison in the same run.
func BenchmarkFloor(b *testing.B) {
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), "/bin/true")
		cmd.Stdout, cmd.Stderr = new(strings.Builder), new(strings.Builder)
		require.NoError(b, cmd.Run())
	}
}

func BenchmarkStartParallel(b *testing.B) {
	c := overSocket(b, connect.WithProtoJSON())
	b.SetParallelism(5)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			command(b, c, "/bin/true")
		}
	})
}

// BenchmarkOutput does not decode what comes: the client would be measured.
func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	for _, how := range []string{"proto", "json"} {
		b.Run(how, func(b *testing.B) {
			client, start := overSocketRaw(b, how)
			b.SetBytes(size)
			for b.Loop() {
				request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://envd/process.Process/Start", bytes.NewReader(start))
				require.NoError(b, err)
				request.Header.Set("Content-Type", "application/connect+"+how)
				answer, err := client.Do(request)
				require.NoError(b, err)
				n, err := io.Copy(io.Discard, answer.Body)
				require.NoError(b, err)
				require.Greater(b, n, int64(size))
				require.NoError(b, answer.Body.Close())
			}
		})
	}
}

// overSocketRaw is a client without a codec, and the first message of a command that prints 64 MiB.
func overSocketRaw(b *testing.B, how string) (*http.Client, []byte) {
	b.Helper()
	no := false
	m := &process.StartRequest{Stdin: &no, Process: &process.ProcessConfig{
		Cmd: "/bin/dd", Args: []string{"if=/dev/zero", "bs=64K", "count=1024", "status=none"},
	}}
	text, err := proto.Marshal(m)
	if how == "json" {
		text, err = protojson.Marshal(m)
	}
	require.NoError(b, err)
	return socketClient(b), append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}
