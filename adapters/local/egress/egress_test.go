package egress

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func open4() Policy {
	return Policy{Internet: true, Resolvers: []netip.AddrPort{netip.MustParseAddrPort(internet4 + ":53")}}
}

// serve opens and serves the facade's half for the box, and returns how to end it.
func serve(t *testing.T, b *aBox, p Policy) (e *Egress, stop func()) {
	t.Helper()
	e, err := Open(b.descriptors(), p, NewBudget(10000))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return e, stop
}

func served(t *testing.T, p Policy) (*aBox, *Egress) {
	t.Helper()
	b := newBox(t, "box")
	e, _ := serve(t, b, p)
	return b, e
}

func TestTrafficReachesTheInternet(t *testing.T) {
	b, _ := served(t, open4())
	for name, c := range map[string]struct {
		order order
		want  string
	}{
		"TCP with a half-closed end": {order{Do: "tcp", To: internet4 + ":80", Text: "echo\nhello"}, "hello"},
		"TCP over IPv6":              {order{Do: "tcp", To: "[" + internet6 + "]:80", Text: "echo\nhello"}, "hello"},
		"UDP":                        {order{Do: "udp", To: internet4 + ":9000", Text: "hi", Count: 50}, hostVeth4 + " hi"},
		"UDP over IPv6":              {order{Do: "udp", To: "[" + internet6 + "]:9000", Text: "hi", Count: 50}, hostVeth6 + " hi"},
		"an empty datagram":          {order{Do: "udp", To: internet4 + ":9000"}, hostVeth4 + " "},
		"a large datagram":           {order{Do: "udp", To: internet4 + ":9000", Text: strings.Repeat("x", 60000)}, hostVeth4 + " " + strings.Repeat("x", 60000)},
		"a name":                     {order{Do: "lookup", To: "test.example"}, internet4},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.do(c.order)
			require.Empty(t, r.Err)
			require.Equal(t, c.want, r.Text)
		})
	}
	r := b.do(order{Do: "lookup", To: "big.example"})
	require.Empty(t, r.Err)
	require.Equal(t, 200, r.Count, "a long answer comes over TCP")
}

func TestNamesThatAreNot(t *testing.T) {
	b, e := served(t, open4())
	require.Contains(t, b.do(order{Do: "lookup", To: "other.example"}).Err, "server misbehaving") // REFUSED by the test's server
	require.NoError(t, e.SetPolicy(Policy{Internet: true, Resolvers: []netip.AddrPort{netip.MustParseAddrPort(internet4 + ":9")}}))
	require.Contains(t, b.do(order{Do: "lookup", To: "test.example"}).Err, "server misbehaving")
}

func TestBreaksArePassedOn(t *testing.T) {
	b, _ := served(t, open4())
	broken := "reset|broken pipe|not connected" // which one depends on what the program does at that moment
	require.Regexp(t, broken, b.do(order{Do: "tcp", To: internet4 + ":80", Text: "break\n"}).Err)
	require.Regexp(t, broken, b.do(order{Do: "tcp", To: internet4 + ":81", Text: "x"}).Err, "a closed port")
}

func TestRefusedDestinations(t *testing.T) {
	b, _ := served(t, open4())
	l, err := net.Listen("tcp", ":8080") // on every address of the host
	require.NoError(t, err)
	defer l.Close()
	taken := make(chan net.Addr, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			taken <- c.RemoteAddr()
			_ = c.Close()
		}
	}()
	_, err = net.Dial("tcp", hostOther4+":8080")
	require.NoError(t, err)
	<-taken
	go func() {
		if c, err := l.Accept(); err == nil {
			taken <- c.RemoteAddr()
		}
	}()
	for _, to := range []string{
		hostVeth4 + ":8080", hostOther4 + ":8080", "[" + hostVeth6 + "]:8080", "10.77.0.1:8080", "0.0.0.0:8080", "127.0.0.1:15001",
		"127.1.2.3:8080", "169.254.169.254:80", "10.0.2.100:15001", "10.0.2.3:8080", "192.168.1.1:80", "172.17.0.1:80", "100.64.0.1:80",
		"100.100.100.200:80", "168.63.129.16:80", "198.18.0.1:80", "192.0.0.192:80", private4 + ":80", "[fd00:ec2::254]:80", "[fe80::1%lo]:80",
		"[fc00::1]:80", "[64:ff9b::7f00:1]:8080", "[2002:7f00:1::]:8080", "[::1]:8080",
	} {
		r := b.do(order{Do: "tcp", To: to, Text: "echo\nx"})
		assert.NotEmpty(t, r.Err, to)
		assert.NotContains(t, r.Err, "i/o timeout", "%s is refused at once", to)
	}
	for _, to := range []string{private4 + ":9000", hostOther4 + ":9000", "[" + hostVeth6 + "]:9000"} {
		assert.Contains(t, b.do(order{Do: "udp", To: to, Text: "x"}).Err, "timeout", to)
	}
	select {
	case a := <-taken:
		t.Fatalf("a box reached the host, from %v", a)
	default:
	}
}

func TestPolicyChangesWhileServing(t *testing.T) {
	b, e := served(t, open4())
	echo := order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}
	inPrivate := order{Do: "tcp", To: private4 + ":80", Text: "echo\nx"}
	require.Empty(t, b.do(echo).Err)
	require.NotEmpty(t, b.do(inPrivate).Err)

	allowed := open4()
	allowed.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	require.NoError(t, e.SetPolicy(allowed))
	require.Empty(t, b.do(inPrivate).Err)
	require.NotEmpty(t, b.do(order{Do: "tcp", To: "10.77.0.1:8080", Text: "x"}).Err, "the host's own address stays refused")

	require.NoError(t, e.SetPolicy(Policy{}))
	require.NotEmpty(t, b.do(echo).Err)
	require.NotEmpty(t, b.do(order{Do: "lookup", To: "test.example"}).Err)
}

func TestAnotherFacadeGoesOn(t *testing.T) {
	b := newBox(t, "box")
	_, stop := serve(t, b, open4())
	echo := order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}
	require.Empty(t, b.do(echo).Err)
	require.Empty(t, b.do(order{Do: "udp", To: internet4 + ":9000", Text: "x"}).Err)
	stop()

	waiting := make(chan result, 1)
	go func() { waiting <- b.do(echo) }()
	serve(t, b, open4())
	require.Equal(t, result{Text: "x", Count: 1}, <-waiting)
	require.Empty(t, b.do(order{Do: "udp", To: internet4 + ":9000", Text: "x"}).Err)
}

func TestManyFlowsMakeRoom(t *testing.T) {
	b, _ := served(t, open4())
	for range maxFlows + 20 {
		r := b.do(order{Do: "udp", To: internet4 + ":9000", Text: "x"})
		require.Empty(t, r.Err)
	}
}

func TestConnectionsOverTheLimitAreReset(t *testing.T) {
	t.Run("of the box", func(t *testing.T) {
		secondIsReset(t, &connections{slots: make(chan struct{}, 1), share: &share{budget: NewBudget(10)}})
	})
	t.Run("of all boxes", func(t *testing.T) {
		secondIsReset(t, &connections{slots: make(chan struct{}, 10), share: &share{budget: NewBudget(2)}})
	})
}

func secondIsReset(t *testing.T, c *connections) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	startWorld(t) // for lo
	ctx, cancel := context.WithCancel(t.Context())
	dialing := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- c.accept(ctx, l, func(ctx context.Context, conn *net.TCPConn) {
			close(dialing)
			<-ctx.Done()
			reset(conn)
		})
	}()
	first, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer first.Close()
	<-dialing
	second, err := net.Dial("tcp", l.Addr().String())
	if err == nil { // else it was reset faster than the connect returned
		defer second.Close()
		_, err = second.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, unix.ECONNRESET)
	cancel()
	require.NoError(t, l.Close())
	require.NoError(t, <-done)
	c.wait.Wait()
	require.Zero(t, c.share.held)
}

func TestWithoutTheInternetThereIsLoopbackOnly(t *testing.T) {
	b := newBox(t, "offline")
	require.Contains(t, b.do(order{Do: "tcp", To: internet4 + ":80", Text: "echo\nx"}).Err, "network is unreachable")
	require.Contains(t, b.do(order{Do: "tcp", To: "[" + internet6 + "]:80", Text: "echo\nx"}).Err, "unreachable")
	require.Contains(t, b.do(order{Do: "tcp", To: "127.0.0.1:80", Text: "x"}).Err, "connection refused")
}

func TestThroughput(t *testing.T) {
	b, _ := served(t, open4())
	const size = 256 << 20
	begin := time.Now()
	r := b.do(order{Do: "down", To: internet4 + ":80", Text: "down 268435456\n"})
	require.Empty(t, r.Err)
	require.Equal(t, size, r.Count)
	down := time.Since(begin)
	begin = time.Now()
	r = b.do(order{Do: "up", To: internet4 + ":80", Count: size})
	require.Empty(t, r.Err)
	require.Equal(t, "268435456", r.Text)
	t.Logf("down %.0f MB/s, up %.0f MB/s", size/1e6/down.Seconds(), size/1e6/time.Since(begin).Seconds())
}

func TestOpenRefusesWhatABoxMayNotPass(t *testing.T) {
	for _, count := range []int{0, 3, 6, 7, 8, 9} {
		var files []*os.File
		for range count {
			f, err := os.Open(os.DevNull)
			require.NoError(t, err)
			files = append(files, f)
		}
		_, err := Open(files, open4(), NewBudget(10000))
		require.Error(t, err, count)
		for _, f := range files {
			require.Error(t, f.Close(), "closed already")
		}
	}
}
