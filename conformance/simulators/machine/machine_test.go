//go:build linux

package machine_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
	"github.com/isthmus/isthmus/envd/tunnel"
)

// box makes a box of the test's own.
func box(t *testing.T, c *machine.Cloud, change ...func(*machine.Spec)) *machine.Box {
	t.Helper()
	s := machine.Spec{Name: "test", Env: map[string]string{"COLOUR": "blue"}}
	for _, f := range change {
		f(&s)
	}
	b, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Destroy(context.WithoutCancel(t.Context()))) })
	return b
}

// sh runs a line of shell and returns its output; it must succeed.
func sh(t *testing.T, b *machine.Box, line string) string {
	t.Helper()
	out, said, exit, err := b.Run(t.Context(), machine.Command{Argv: []string{"/bin/sh", "-c", line}})
	require.NoError(t, err)
	require.Equal(t, machine.Exit{}, exit, "%s: %s%s", line, out, said)
	return string(out)
}

func TestABoxIsAMachineOfAVendor(t *testing.T) {
	b := box(t, open(t))
	require.Equal(t, "0 blue /root\n", sh(t, b, `echo $(id -u) $COLOUR $HOME`))
	require.Equal(t, "3", sh(t, b, `python3 -c 'import sys; print(sys.version_info[0], end="")'`))
	require.Contains(t, sh(t, b, "node --version; git --version"), "git version")
	require.Empty(t, sh(t, b, "ls -A /run/isthmus 2>/dev/null || true"), "nothing of ours is where an adapter's envd goes")
	_, err := b.Dial(t.Context(), 49983)
	require.ErrorIs(t, err, tunnel.ErrPortClosed, "nothing listens where an adapter's envd will")
	usage, err := b.Usage(t.Context())
	require.NoError(t, err)
	require.Positive(t, usage.MemUsed)
	require.Empty(t, b.Cause())
}

func TestProcess(t *testing.T) {
	b := box(t, open(t))
	t.Run("streams and input", func(t *testing.T) {
		p, err := b.Start(t.Context(), machine.Command{Argv: []string{"/bin/sh", "-c", "cat; echo end >&2; exit 3"}, Stdin: true, Dir: "/tmp"})
		require.NoError(t, err)
		require.Positive(t, p.PID())
		text := strings.Repeat("0123456789", 100_000)
		go func() {
			_, _ = io.WriteString(p.Stdin(), text)
			_ = p.Stdin().Close()
		}()
		out, err := io.ReadAll(p.Stdout())
		require.NoError(t, err)
		require.Equal(t, len(text), len(out))
		said, err := io.ReadAll(p.Stderr())
		require.NoError(t, err)
		require.Equal(t, "end\n", string(said))
		exit, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, machine.Exit{Code: 3}, exit)
		_, err = p.Stdin().Write([]byte("late"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(p.Signal(t.Context(), syscall.SIGTERM)))
	})
	t.Run("a terminal", func(t *testing.T) {
		// No shell that edits lines: one that just changes the mode of its terminal may lose the end of its input.
		program := []string{"/bin/sh", "-c", "read -r line && stty size && exec cat"}
		p, err := b.Start(t.Context(), machine.Command{Argv: program, PTY: &machine.Size{Rows: 20, Cols: 70}})
		require.NoError(t, err)
		require.NoError(t, p.Resize(t.Context(), machine.Size{Rows: 31, Cols: 97}))
		_, err = io.WriteString(p.Stdin(), "go\n")
		require.NoError(t, err)
		lines := bufio.NewScanner(p.Stdout())
		found := false
		for !found && lines.Scan() {
			found = strings.TrimSpace(lines.Text()) == "31 97"
		}
		require.True(t, found)
		go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
		require.NoError(t, p.Stdin().Close())
		_, err = p.Wait(t.Context())
		require.NoError(t, err)
	})
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			p, err := b.Start(t.Context(), machine.Command{Argv: []string{"sleep", "1000"}})
			require.NoError(t, err)
			require.NoError(t, p.Signal(t.Context(), signal))
			exit, err := p.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, -1, exit.Code)
			require.Contains(t, exit.Signal, "SIG")
		})
	}
	t.Run("what cannot be started", func(t *testing.T) {
		for want, c := range map[adapters.Kind]machine.Command{
			adapters.KindPrecondition: {Argv: []string{"/no/such/program"}},
			adapters.KindInvalid:      {Argv: []string{"true"}, User: "nobody-here"},
		} {
			_, err := b.Start(t.Context(), c)
			require.Equal(t, want, adapters.KindOf(err), "%v", err)
		}
	})
	t.Run("it runs on when it is let go of", func(t *testing.T) {
		p, err := b.Start(t.Context(), machine.Command{Argv: []string{"/bin/sh", "-c", "while :; do echo on; sleep 0.01; done"}})
		require.NoError(t, err)
		p.Close()
		_, err = p.Wait(t.Context())
		require.Error(t, err)
		require.NoError(t, p.Signal(t.Context(), syscall.SIGKILL))
	})
}

func TestFiles(t *testing.T) {
	b := box(t, open(t))
	big := strings.Repeat("x", 3<<20)
	for path, content := range map[string]string{"/a/b/c file": "one", "/a/big": big, "/a/empty": ""} {
		require.NoError(t, b.Write(t.Context(), path, 0o751, strings.NewReader("before")))
		require.NoError(t, b.Write(t.Context(), path, 0o751, strings.NewReader(content)))
		r, err := b.Read(t.Context(), path)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, content, string(got))
	}
	require.Equal(t, "751 root\n751 root\n751 root\n", sh(t, b, `stat -c '%a %U' /a/b/c* /a/big /a/empty`))
	require.Equal(t, "/a/b\n/a/big\n/a/empty\n/a/b/c file\n", sh(t, b, `find /a -mindepth 1 -maxdepth 1 | sort; find /a/b -type f`))
	_, err := b.Read(t.Context(), "/a/nothing")
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Equal(t, adapters.KindInvalid, adapters.KindOf(b.Write(t.Context(), "relative", 0o644, strings.NewReader(""))))
}

func TestPortsOnLoopback(t *testing.T) {
	b := box(t, open(t))
	p, err := b.Start(t.Context(), machine.Command{Argv: []string{"python3", "-u", "-c",
		"import socket\ns=socket.create_server(('127.0.0.1',8123))\nprint('up')\nc,_=s.accept()\nc.sendall(c.recv(99)[::-1])\nc.close()"}})
	require.NoError(t, err)
	_, err = bufio.NewReader(p.Stdout()).ReadString('\n')
	require.NoError(t, err)
	conn, err := b.Dial(t.Context(), 8123)
	require.NoError(t, err)
	_, err = conn.Write([]byte("abc"))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "cba", string(answer))
	require.NoError(t, conn.Close())
}

func TestEnd(t *testing.T) {
	b := box(t, open(t))
	p, err := b.Start(t.Context(), machine.Command{Argv: []string{"sleep", "1000"}})
	require.NoError(t, err)
	require.NoError(t, b.Destroy(t.Context()))
	<-b.Ended()
	require.Equal(t, machine.CauseDestroyed, b.Cause())
	_, err = p.Wait(t.Context())
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	_, err = b.Start(t.Context(), machine.Command{Argv: []string{"true"}})
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.NoError(t, b.Destroy(t.Context()))
}

func TestStopAndRestart(t *testing.T) {
	b := box(t, open(t))
	sh(t, b, "echo kept > /root/a; echo gone > /run/b; (sleep 1000 >/dev/null 2>&1 &)")
	ended := b.Ended()
	require.NoError(t, b.Stop(t.Context()))
	<-ended
	require.Equal(t, machine.CauseStopped, b.Cause())
	require.NoError(t, b.Stop(t.Context()))
	stopped, err := b.Stopped(t.Context())
	require.NoError(t, err)
	require.True(t, stopped)
	_, err = b.Start(t.Context(), machine.Command{Argv: []string{"true"}})
	require.Error(t, err)
	require.NoError(t, b.Restart(t.Context()))
	require.Empty(t, b.Cause())
	require.Equal(t, "kept blue 0\n", sh(t, b, "echo $(cat /root/a; cat /run/b 2>/dev/null; echo $COLOUR; pgrep -c sleep)"))
}

func TestSnapshot(t *testing.T) {
	c := open(t)
	b := box(t, c, func(s *machine.Spec) { s.DiskMB = 300 })
	sh(t, b, "echo before > /root/a; (sleep 1000 >/dev/null 2>&1 &)")
	s, err := b.Snapshot(t.Context())
	require.NoError(t, err)
	require.Positive(t, s.SizeBytes)
	require.Equal(t, "1\n", sh(t, b, "echo after > /root/a; pgrep -c sleep"), "it runs on")
	require.NoError(t, b.Destroy(t.Context()))
	for range 2 {
		other := box(t, c, func(spec *machine.Spec) { spec.From, spec.Env = s, nil })
		require.Equal(t, "before blue\n", sh(t, other, "echo $(cat /root/a) $COLOUR"))
	}
	require.NoError(t, s.Delete())
	require.NoError(t, s.Delete())
	_, err = c.Create(t.Context(), machine.Spec{From: s})
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
}

func TestNetwork(t *testing.T) {
	b := box(t, open(t))
	connects := func() bool {
		_, _, exit, err := b.Run(t.Context(), machine.Command{Argv: []string{"python3", "-c",
			`import socket; socket.create_connection(("198.51.100.1", 80), 5)`}})
		require.NoError(t, err)
		return exit.Code == 0
	}
	require.False(t, connects(), "there is loopback only")
	require.NoError(t, b.SetNetwork(t.Context(), machine.Network{Allow: []string{"198.51.100.0/24"}}))
	require.True(t, connects(), "the connect is taken, whatever lies behind it")
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.SetNetwork(t.Context(), machine.Network{}))
	require.NoError(t, b.Restart(t.Context()))
	require.False(t, connects())
	require.Equal(t, adapters.KindInvalid, adapters.KindOf(b.SetNetwork(t.Context(), machine.Network{Allow: []string{"a b"}})))
}

func TestACancelledStartStartsNothingThatStays(t *testing.T) {
	b := box(t, open(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
	defer cancel()
	_, err := b.Start(ctx, machine.Command{Argv: []string{"sleep", "1000"}})
	require.Error(t, err)
	require.Eventually(t, func() bool { return strings.TrimSpace(sh(t, b, "pgrep -c sleep || true")) == "0" }, 30*time.Second, 20*time.Millisecond)
}
