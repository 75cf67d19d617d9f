package egress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// The tests have a world of their own: the test binary runs itself again as the host, in a network namespace
// without anything (as an ordinary user: in a user namespace too), and from there as "the internet", one more
// namespace at the other end of a veth pair, and as boxes. Nothing of the machine's network is used, and the
// kernel takes all of it away when the processes end.
const role = "EGRESS_TEST_ROLE"

const (
	internet4  = "203.0.113.10"
	internet6  = "2001:db8::10"
	hostVeth4  = "203.0.113.1"
	hostVeth6  = "2001:db8::1"
	hostOther4 = "198.51.100.7" // one more address of the host, a public one
	private4   = "10.77.0.10"   // the internet's, in a private range
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(runHost())
	case "internet":
		internet()
	case "box":
		box()
	case "offline":
		must(inside.Loopback())
		obey()
	default:
		os.Exit(m.Run())
	}
}

// runHost runs the tests in namespaces of their own.
func runHost() int {
	c := child("host", os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET | unix.CLONE_NEWNS
	if os.Getuid() != 0 {
		own(c.SysProcAttr, os.Getuid(), os.Getgid())
	}
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGQUIT) // for the child, which reports
	defer signal.Stop(ignored)
	if err := c.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests' host namespace:", err)
		return 1
	}
	return 0
}

// child is the test binary in another role.
func child(as string, args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), role+"="+as)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// own gives the process a user namespace in which it is root.
func own(a *syscall.SysProcAttr, uid, gid int) {
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
}

// world is the internet; its standard input keeps it alive.
var world struct {
	once  sync.Once
	alive io.WriteCloser
}

// startWorld makes the internet, once for all tests.
func startWorld(t *testing.T) {
	t.Helper()
	world.once.Do(func() {
		ip(t, "link set lo up")
		c := child("internet")
		c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET
		c.SysProcAttr.Pdeathsig = 0 // the thread that starts it may end before the process; stdin's end stops it
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		ip(t, "link add up0 type veth peer name inet0")
		ip(t, fmt.Sprintf("link set inet0 netns %d", c.Process.Pid))
		ip(t, "addr add "+hostVeth4+"/24 dev up0")
		ip(t, "addr add "+hostVeth6+"/64 dev up0 nodad")
		ip(t, "addr add 10.77.0.1/24 dev up0")
		ip(t, "addr add "+hostOther4+"/32 dev lo")
		ip(t, "link set up0 up")
		_, err = io.WriteString(in, "go\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		world.alive = in
	})
}

func ip(t *testing.T, args string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", args, out)
}

// aBox is a box of the tests: a process in a user and network namespace of its own that does what it is told.
type aBox struct {
	t       *testing.T
	control *os.File
	mu      sync.Mutex
	in      io.Writer
	out     *json.Decoder
}

func newBox(t *testing.T, as string) *aBox {
	t.Helper()
	startWorld(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	c := child(as)
	c.SysProcAttr.Pdeathsig = 0
	c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET
	own(c.SysProcAttr, 0, 0)
	c.Stderr = os.Stderr
	c.ExtraFiles = []*os.File{theirs}
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.NoError(t, theirs.Close())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, c.Wait())
		_ = ours.Close()
	})
	return &aBox{t: t, control: ours, in: in, out: json.NewDecoder(out)}
}

// descriptors asks the box for its sockets, as a facade does that starts anew.
func (b *aBox) descriptors() []*os.File {
	b.t.Helper()
	fd := int(b.control.Fd())
	require.NoError(b.t, unix.Send(fd, []byte("?"), 0))
	oob := make([]byte, unix.CmsgSpace(4*inside.Most))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	require.NoError(b.t, err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	require.NoError(b.t, err)
	fds, err := unix.ParseUnixRights(&messages[0])
	require.NoError(b.t, err)
	var files []*os.File
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "egress"))
	}
	return files
}

// order is what a test tells a box to do, result what came of it.
type order struct {
	Do    string // tcp, udp, lookup, down, up, hold
	To    string
	Text  string
	Count int
}

type result struct {
	Text  string
	Count int
	Err   string
}

func (b *aBox) do(o order) result {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NoError(b.t, json.NewEncoder(b.in).Encode(o))
	var r result
	require.NoError(b.t, b.out.Decode(&r))
	return r
}
