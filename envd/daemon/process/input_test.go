package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	wire "github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

func closeStdin(t *testing.T, c processconnect.ProcessClient, pid uint32) error {
	t.Helper()
	_, err := c.CloseStdin(limited(t), connect.NewRequest(&wire.CloseStdinRequest{Process: byPID(pid)}))
	return err
}

func resize(t *testing.T, c processconnect.ProcessClient, pid uint32, pty *wire.PTY) error {
	t.Helper()
	_, err := c.Update(limited(t), connect.NewRequest(&wire.UpdateRequest{Process: byPID(pid), Pty: pty}))
	return err
}

func TestStdin(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	e := begin(t, c, withStdin(shell("cat")))
	for _, text := range []string{"one\n", "", "!@#$%^&*()_+ ü\n", strings.Repeat("long ", 100000)} {
		require.NoError(t, send(t, c, byPID(e.pid), stdin(text)))
	}
	require.NoError(t, closeStdin(t, c, e.pid))
	e.finish(t)
	require.Equal(t, "one\n!@#$%^&*()_+ ü\n"+strings.Repeat("long ", 100000), e.stdout)
	require.Zero(t, e.end.GetExitCode())

	yes := true
	m := shell("cat")
	m.Stdin = &yes
	e = begin(t, c, m)
	require.NoError(t, closeStdin(t, c, e.pid))
	e.finish(t)
	require.Empty(t, begin(t, c, shell("cat; readlink /proc/self/fd/0 | grep -v null")).finish(t).stdout, "without it, nothing comes")
}

func TestInputErrors(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	none := begin(t, c, shell("sleep 100"))
	deaf := begin(t, c, withStdin(shell("exec <&-; echo ready; sleep 100")))
	deaf.until(t, func() bool { return deaf.stdout != "" })
	closed := begin(t, c, withStdin(shell("sleep 100")))
	require.NoError(t, closeStdin(t, c, closed.pid))
	require.NoError(t, closeStdin(t, c, closed.pid), "twice is fine")
	pty := begin(t, c, withPTY(shell("sleep 100"), 80, 24))
	require.NoError(t, closeStdin(t, c, none.pid), "closing what is not there is fine")
	require.NoError(t, resize(t, c, none.pid, nil))
	for _, x := range []struct {
		name string
		err  error
		code connect.Code
		text string
	}{
		{"disabled", send(t, c, byPID(none.pid), stdin("x")), connect.CodeInternal, "error writing to stdin: stdin not enabled or closed"},
		{"closed", send(t, c, byPID(closed.pid), stdin("x")), connect.CodeInternal, "error writing to stdin: stdin not enabled or closed"},
		{"reader gone", send(t, c, byPID(deaf.pid), stdin("x")), connect.CodeInternal, "error writing to stdin: write |1: broken pipe"},
		{"stdin of a pty", send(t, c, byPID(pty.pid), stdin("x")), connect.CodeInternal, "error writing to stdin: tty assigned to process — input should be written to the pty, not the stdin"},
		{"keys without a pty", send(t, c, byPID(none.pid), keys("x")), connect.CodeInternal, "error writing to tty: tty not assigned to process — input should be written to the stdin, not the tty"},
		{"no input", send(t, c, byPID(none.pid), nil), connect.CodeUnimplemented, "invalid input type <nil>"},
		{"empty input", send(t, c, byPID(none.pid), &wire.ProcessInput{}), connect.CodeUnimplemented, "invalid input type <nil>"},
		{"close of a pty", closeStdin(t, c, pty.pid), connect.CodeUnknown, "error closing stdin: cannot close stdin for PTY process — send Ctrl+D (0x04) instead"},
		{"size without a pty", resize(t, c, none.pid, &wire.PTY{}), connect.CodeInternal, "error resizing tty: tty not assigned to process"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var failed *connect.Error
			require.ErrorAs(t, x.err, &failed)
			require.Equal(t, x.code, failed.Code())
			require.Equal(t, x.text, failed.Message())
		})
	}
	for _, e := range []*events{none, deaf, closed, pty} {
		require.NoError(t, kill(t, c, e.pid))
		e.finish(t)
	}
}

func TestAnInputThatNobodyReadsEndsWithItsCall(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	e := begin(t, c, withStdin(shell("sleep 600")))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := c.SendInput(ctx, connect.NewRequest(&wire.SendInputRequest{
		Process: byPID(e.pid), Input: stdin(strings.Repeat("x", 1<<20)),
	}))
	require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
	require.NoError(t, kill(t, c, e.pid), "and the next one is served")
	e.finish(t)
}

func TestStreamInput(t *testing.T) {
	h := start(t, nil)
	for name, h2 := range map[string]bool{"h1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			c := h.client(t, h2, true)
			e := begin(t, c, withStdin(shell("cat")))
			in := c.StreamInput(limited(t))
			require.NoError(t, in.Send(&wire.StreamInputRequest{Event: &wire.StreamInputRequest_Start{
				Start: &wire.StreamInputRequest_StartEvent{Process: byPID(e.pid)}}}))
			for _, text := range []string{"a", "b", "c"} {
				require.NoError(t, in.Send(&wire.StreamInputRequest{Event: &wire.StreamInputRequest_Data{
					Data: &wire.StreamInputRequest_DataEvent{Input: stdin(text)}}}))
				require.NoError(t, in.Send(&wire.StreamInputRequest{Event: &wire.StreamInputRequest_Keepalive{
					Keepalive: &wire.StreamInputRequest_KeepAlive{}}}))
			}
			_, err := in.CloseAndReceive()
			require.NoError(t, err)
			require.NoError(t, closeStdin(t, c, e.pid))
			require.Equal(t, "abc", e.finish(t).stdout)
		})
	}
	in := h.sdk(t).StreamInput(limited(t))
	_ = in.Send(&wire.StreamInputRequest{Event: &wire.StreamInputRequest_Data{Data: &wire.StreamInputRequest_DataEvent{Input: stdin("x")}}})
	_, err := in.CloseAndReceive()
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "data before start")
}

func TestPTY(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	m := withPTY(shell("stty -echo; stty size; trap 'stty size' WINCH; echo ready; while read x; do echo got $x; done; exit 5"), 80, 24)
	m.Process.Cmd = "/bin/bash" // Another shell gives up reading when its terminal changes.
	e := begin(t, c, m)
	e.until(t, func() bool { return strings.Contains(e.pty, "ready") })
	require.True(t, strings.HasPrefix(e.pty, "24 80\r\n"), "%q", e.pty)
	require.NoError(t, resize(t, c, e.pid, &wire.PTY{Size: &wire.PTY_Size{Cols: 100, Rows: 30}}))
	require.NoError(t, send(t, c, byPID(e.pid), keys("hello\n")))
	e.until(t, func() bool { return strings.Contains(e.pty, "got hello") })
	require.Contains(t, e.pty, "30 100\r\n", "the program hears of the new size")
	require.NoError(t, send(t, c, byPID(e.pid), keys("\x04")))
	require.EqualValues(t, 5, e.finish(t).end.GetExitCode())
	require.Empty(t, e.stdout+e.stderr)

	m = shell("stty size; test -t 0 -a -t 1 -a -t 2 && test $(cut -d' ' -f6 /proc/self/stat) = $$ && echo leader")
	m.Pty = &wire.PTY{}
	require.Equal(t, "0 0\r\nleader\r\n", begin(t, c, m).finish(t).pty, "without a size; a session of its own")
	e = begin(t, c, withPTY(shell("tty; echo x > $(tty)"), 80, 24), basic("guest")...).finish(t)
	require.Contains(t, e.pty, "x\r\n", "the terminal belongs to the user")
}

func TestPTYKill(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	e := begin(t, c, withPTY(&wire.StartRequest{Process: &wire.ProcessConfig{Cmd: "/bin/bash", Args: []string{"--norc", "-i"}}}, 80, 24))
	require.NoError(t, send(t, c, byPID(e.pid), keys("echo rea''dy\n")))
	e.until(t, func() bool { return strings.Contains(e.pty, "ready") })
	require.NoError(t, sendSignal(t, c, byPID(e.pid), wire.Signal_SIGNAL_SIGTERM), "an interactive shell ignores it")
	require.NoError(t, send(t, c, byPID(e.pid), keys("echo al''ive\n")))
	e.until(t, func() bool { return strings.Contains(e.pty, "alive") })
	require.NoError(t, kill(t, c, e.pid))
	require.Equal(t, "signal: killed", e.finish(t).end.GetError())
}
