package process_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	wire "github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

func list(t *testing.T, c processconnect.ProcessClient) []*wire.ProcessInfo {
	t.Helper()
	all, err := c.List(limited(t), connect.NewRequest(&wire.ListRequest{}))
	require.NoError(t, err)
	return all.Msg.GetProcesses()
}

func send(t *testing.T, c processconnect.ProcessClient, to *wire.ProcessSelector, in *wire.ProcessInput) error {
	t.Helper()
	_, err := c.SendInput(limited(t), connect.NewRequest(&wire.SendInputRequest{Process: to, Input: in}))
	return err
}

func sendSignal(t *testing.T, c processconnect.ProcessClient, to *wire.ProcessSelector, sig wire.Signal) error {
	t.Helper()
	_, err := c.SendSignal(limited(t), connect.NewRequest(&wire.SendSignalRequest{Process: to, Signal: sig}))
	return err
}

func kill(t *testing.T, c processconnect.ProcessClient, pid uint32) error {
	t.Helper()
	return sendSignal(t, c, byPID(pid), wire.Signal_SIGNAL_SIGKILL)
}

func TestDisconnectLeavesTheProcessAndConnectSeesOnlyWhatFollows(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	first := begin(t, c, withStdin(shell("echo one; read x; echo two $x; exit 5")))
	first.until(t, func() bool { return first.stdout == "one\n" })
	first.close()
	second := attach(t, c, byPID(first.pid))
	require.Equal(t, first.pid, second.pid)
	require.NoError(t, send(t, c, byPID(first.pid), stdin("go\n")))
	second.finish(t)
	require.Equal(t, "two go\n", second.stdout)
	require.EqualValues(t, 5, second.end.GetExitCode())
	late := attach(t, c, byPID(first.pid)).finish(t)
	require.EqualValues(t, 5, late.end.GetExitCode(), "the exit is kept")
	require.Empty(t, late.stdout)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(kill(t, c, first.pid)), "for Connect only")
}

func TestEveryFollowerGetsEverythingInTheSameOrder(t *testing.T) {
	h := start(t, nil)
	c := h.client(t, true, false)
	all := []*events{begin(t, c, withStdin(shell("read x; for i in $(seq 500); do echo $i; echo e$i >&2; done")))}
	for range 3 {
		all = append(all, attach(t, c, byPID(all[0].pid)))
	}
	require.NoError(t, send(t, c, byPID(all[0].pid), stdin("\n")))
	var done sync.WaitGroup
	for _, e := range all {
		done.Go(func() {
			for e.take() == nil {
			}
		})
	}
	done.Wait()
	for _, e := range all {
		require.NotNil(t, e.end)
		require.Len(t, strings.Fields(e.stdout), 500)
		require.Equal(t, all[0].stdout, e.stdout)
		require.Equal(t, all[0].stderr, e.stderr)
	}
}

func TestASlowFollowerHoldsTheProgramUntilItLeaves(t *testing.T) {
	h := start(t, nil)
	c := h.client(t, false, false)
	stalled := begin(t, c, &wire.StartRequest{Process: &wire.ProcessConfig{Cmd: "cat", Args: []string{"/dev/zero"}}})
	other := attach(t, c, byPID(stalled.pid))
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		for other.take() == nil && other.end == nil {
			other.stdout = ""
			moved <- struct{}{}
		}
	}()
	// Reads until nothing has come for a while; false when it never stops.
	stops := func() bool {
		for limit := time.After(patience); ; {
			select {
			case <-moved:
			case <-time.After(300 * time.Millisecond):
				return true
			case <-limit:
				return false
			}
		}
	}
	require.True(t, stops(), "the program goes on although a follower does not read")
	stalled.close()
	select {
	case <-moved:
	case <-time.After(patience):
		t.Fatal("the program is still held")
	}
	go func() { _ = kill(t, c, other.pid) }()
	for range moved {
	}
	require.Equal(t, "signal: killed", other.end.GetError())
}

func TestSelectors(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	tagged := map[string]*events{}
	for _, tag := range []string{"one", "two", "three"} {
		m := withStdin(shell("read x"))
		m.Tag = proto.String(tag)
		tagged[tag] = begin(t, c, m)
	}
	for tag, e := range tagged {
		require.Equal(t, e.pid, attach(t, c, byTag(tag)).pid)
	}
	for _, p := range list(t, c) {
		require.Equal(t, tagged[p.GetTag()].pid, p.GetPid())
		require.True(t, proto.Equal(shell("read x").GetProcess(), p.GetConfig()), "the configuration as it was sent")
	}
	for _, x := range []struct {
		to   *wire.ProcessSelector
		code connect.Code
		text string
	}{
		{byPID(999999), connect.CodeNotFound, "process with pid 999999 not found"},
		{byTag("nope"), connect.CodeNotFound, "process with tag nope not found"},
		{nil, connect.CodeUnimplemented, "invalid input type *process.ProcessSelector"},
		{&wire.ProcessSelector{}, connect.CodeUnimplemented, "invalid input type *process.ProcessSelector"},
	} {
		for call, err := range everyCall(t, c, x.to) {
			var failed *connect.Error
			require.ErrorAs(t, err, &failed, call)
			require.Equal(t, x.code, failed.Code(), call)
			require.Equal(t, x.text, failed.Message(), call)
		}
	}
	for tag, e := range tagged {
		require.NoError(t, sendSignal(t, c, byTag(tag), wire.Signal_SIGNAL_SIGKILL))
		e.finish(t)
	}
	require.Empty(t, list(t, c))
}

// everyCall makes every call that takes a selector.
func everyCall(t *testing.T, c processconnect.ProcessClient, to *wire.ProcessSelector) map[string]error {
	t.Helper()
	errs := map[string]error{
		"SendInput":  send(t, c, to, stdin("x")),
		"SendSignal": sendSignal(t, c, to, wire.Signal_SIGNAL_SIGKILL),
	}
	_, errs["CloseStdin"] = c.CloseStdin(limited(t), connect.NewRequest(&wire.CloseStdinRequest{Process: to}))
	_, errs["Update"] = c.Update(limited(t), connect.NewRequest(&wire.UpdateRequest{Process: to}))
	s, err := c.Connect(limited(t), connect.NewRequest(&wire.ConnectRequest{Process: to}))
	require.NoError(t, err)
	require.False(t, s.Receive())
	errs["Connect"] = s.Err()
	in := c.StreamInput(limited(t))
	_ = in.Send(&wire.StreamInputRequest{Event: &wire.StreamInputRequest_Start{Start: &wire.StreamInputRequest_StartEvent{Process: to}}})
	_, errs["StreamInput"] = in.CloseAndReceive()
	return errs
}

// soon is a time limit in milliseconds, in which a busy machine has begun what the limit ends.
const soon = "2000"

func TestTheTimeLimitKillsEvenWhenNobodyFollows(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	first := begin(t, c, shell("sleep 100"), "Connect-Timeout-Ms", soon)
	other := attach(t, c, byPID(first.pid))
	first.close()
	other.finish(t)
	require.EqualValues(t, -1, other.end.GetExitCode())
	require.Equal(t, "signal: killed", other.end.GetError())

	err := begin(t, c, shell("sleep 100"), "Connect-Timeout-Ms", soon).fail(t)
	require.Equal(t, connect.CodeDeadlineExceeded, err.Code())
	require.Equal(t, "context deadline exceeded", err.Message())
	require.Eventually(t, func() bool { return len(list(t, c)) == 0 }, patience, time.Millisecond)

	err = refused(t, c, shell("true"), "Connect-Timeout-Ms", "0")
	require.Equal(t, connect.CodeDeadlineExceeded, err.Code())
}

func TestTheTimeLimitOfConnectEndsTheStreamOnly(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	first := begin(t, c, withStdin(shell("read x; exit 7")))
	err := attach(t, c, byPID(first.pid), "Connect-Timeout-Ms", soon).fail(t)
	require.Equal(t, connect.CodeDeadlineExceeded, err.Code())
	require.NoError(t, send(t, c, byPID(first.pid), stdin("\n")))
	require.EqualValues(t, 7, first.finish(t).end.GetExitCode())
}

func TestKeepaliveOnlyWhenIdleAndNeverFasterThanASecond(t *testing.T) {
	h := start(t, nil)
	for _, interval := range []string{"0", "1", "-5"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			alike(t, h, "sleep 1.5", interval, 1)
		})
	}
	alike(t, h, "for i in 1 2 3 4; do sleep 0.4; echo; done", "1", 0) // output starts the interval anew
}

// alike runs a script until it has come with so many keepalives, a few times at most: a busy machine may stretch one
// run, hardly all, while a keepalive that comes by mistake comes in each.
func alike(t *testing.T, h *harness, script, interval string, want int) {
	t.Helper()
	var counts []int
	for len(counts) < 10 {
		e := begin(t, h.sdk(t), shell(script), "Keepalive-Ping-Interval", interval).finish(t)
		if e.keepalives == want {
			return
		}
		counts = append(counts, e.keepalives)
	}
	require.Fail(t, "keepalives come otherwise", "%d were wanted of %q at %s: %v", want, script, interval, counts)
}

func TestSignalsGoToOneProcess(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	e := begin(t, c, shell("sleep 100 & echo $!; wait"))
	e.until(t, func() bool { return strings.HasSuffix(e.stdout, "\n") })
	orphan := strings.TrimSpace(e.stdout)
	require.NoError(t, kill(t, c, e.pid))
	e.finish(t) // At once, although the orphan holds both pipes.
	require.Equal(t, "signal: killed", e.end.GetError())
	alive := begin(t, c, shell("kill -0 "+orphan+" && kill -9 "+orphan)).finish(t)
	require.Zero(t, alive.end.GetExitCode(), "children survive")

	e = begin(t, c, shell("trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"))
	e.until(t, func() bool { return e.stdout == "ready\n" })
	require.NoError(t, sendSignal(t, c, byPID(e.pid), wire.Signal_SIGNAL_SIGTERM))
	e.finish(t)
	require.Equal(t, "ready\ncaught\n", e.stdout, "what was written before the end is delivered")
	require.EqualValues(t, 9, e.end.GetExitCode())

	e = begin(t, c, withStdin(shell("read x")))
	var failed *connect.Error
	require.ErrorAs(t, sendSignal(t, c, byPID(e.pid), wire.Signal_SIGNAL_UNSPECIFIED), &failed)
	require.Equal(t, connect.CodeUnimplemented, failed.Code())
	require.Equal(t, "invalid signal: SIGNAL_UNSPECIFIED", failed.Message())
	require.NoError(t, kill(t, c, e.pid))
}

func TestKillLetsGoOfAProcessWhoseOutputIsHeldOpen(t *testing.T) {
	h := start(t, nil)
	c := h.sdk(t)
	e := begin(t, c, shell("sleep 100 & echo $!; exit 6"))
	e.until(t, func() bool { return strings.HasSuffix(e.stdout, "\n") })
	require.Eventually(t, func() bool { return syscall.Kill(int(e.pid), 0) == syscall.ESRCH }, patience, time.Millisecond)
	require.Len(t, list(t, c), 1)
	require.NoError(t, kill(t, c, e.pid))
	require.EqualValues(t, 6, e.finish(t).end.GetExitCode())
	begin(t, c, shell("kill -9 "+strings.TrimSpace(e.stdout))).finish(t)
}
