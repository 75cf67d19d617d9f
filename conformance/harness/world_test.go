package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The roles that the test binary plays, told to it by roleVariable.
const (
	roleVariable = "ISTHMUS_HARNESS_ROLE"
	roleWorld    = "world"
	roleInternet = "internet"
	// Facades whose one pool are boxes of which one port, or nothing but exec, can be had.
	roleOnePort  = "one port"
	roleOnlyExec = "only exec"
)

// The addresses of the world. TEST-NET ones are as good as public to Isthmus, and are nobody's.
const (
	hostAddress     = "203.0.113.1"
	internetAddress = "203.0.113.10"
	// spareAddress and privateAddress are two more addresses of the host, which sandboxes must not reach either.
	spareAddress   = "198.51.100.7"
	privateAddress = "10.99.0.1"
	// domain is the one that the facade serves in domain mode.
	domain = "isthmus.test"
)

// init of the world: the shell that is process 1 collects the orphans, which a Go program would not.
const worldInit = `mount --make-rprivate / && trap 'kill -TERM $child' TERM INT; "$@" & child=$!
while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || exit $code; done`

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case roleOnePort, roleOnlyExec:
		os.Exit(serveBare(role))
	case roleInternet:
		os.Exit(serveInternet())
	case roleWorld:
		stop, err := furnishWorld(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, "harness: setting up the world:", err)
			os.Exit(1)
		}
		code := m.Run()
		stop()
		os.Exit(code)
	}
	os.Exit(enterWorld())
}

// enterWorld prepares what needs the real network, and runs the test binary again inside the world.
func enterWorld() int {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "harness: the conformance of the local backend is tested as root: run it with sudo")
		return 1
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		return 1
	}
	args := append([]string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", worldInit, "world"}, os.Args...)
	world := exec.Command("unshare", args...)
	world.Env = append(os.Environ(), roleVariable+"="+roleWorld)
	world.Stdin, world.Stdout, world.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := world.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness: entering the world:", err)
		return 1
	}
	return 0
}

// furnishWorld makes the network of the world, starts its internet and points its resolver there.
func furnishWorld(ctx context.Context) (stop func(), err error) {
	restore, err := privateEtc()
	if err != nil {
		return nil, err
	}
	internet := exec.CommandContext(ctx, "/proc/self/exe")
	internet.Env = append(os.Environ(), roleVariable+"="+roleInternet)
	internet.Stderr = os.Stderr
	internet.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	begin, err := internet.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := internet.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := internet.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = internet.Process.Kill()
		_ = internet.Wait()
		restore()
	}
	if err := plug(internet.Process.Pid); err != nil {
		stop()
		return nil, err
	}
	// The internet starts its servers when it is told that it has its address, and says when they listen.
	_, err = fmt.Fprintln(begin, "go")
	if err == nil {
		_, err = ready.Read(make([]byte, 1))
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// plug connects the world to the process that is its internet.
func plug(internet int) error {
	enter := []string{"nsenter", "--target", strconv.Itoa(internet), "--net"}
	for _, line := range []string{
		"ip link set lo up",
		"ip link add world0 type veth peer name inet0",
		"ip link set inet0 netns " + strconv.Itoa(internet),
		"ip addr add " + hostAddress + "/24 dev world0",
		"ip link set world0 up",
		"ip route add default via " + internetAddress,
		"ip addr add " + spareAddress + "/32 dev world0",
		"ip addr add " + privateAddress + "/24 dev world0",
		"@ip link set lo up",
		"@ip addr add " + internetAddress + "/24 dev inet0",
		"@ip link set inet0 up",
	} {
		words := strings.Fields(strings.TrimPrefix(line, "@"))
		if line[0] == '@' {
			words = append(append([]string{}, enter...), words...)
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}
