package tunnel_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
)

const patience = 30 * time.Second

// daemon runs the daemon's end and returns how to reach it, and a way to cut it off.
func daemon(t *testing.T) (tunnel.Target, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	handler := tunnel.NewHandler()
	var serving sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		if r.Header.Get(envd.HeaderControl) != "secret" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(func() {
		cancel()
		server.Close()
		serving.Wait()
	})
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	return tunnel.Target{URL: base, Control: "secret"}, cancel
}

// program listens on a loopback address and serves each connection.
func program(t *testing.T, address string, serve func(*net.TCPConn)) int {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

func dial(t *testing.T, to tunnel.Target, port int) *tunnel.Conn {
	t.Helper()
	// The context ends right after the opening: the connection must not.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := tunnel.Dial(ctx, to, port)
	require.NoError(t, err)
	t.Cleanup(c.Abort)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

func TestBothDirectionsAndHalfClose(t *testing.T) {
	to, _ := daemon(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			// Answers only after the whole request has ended, as a program does that reads to the end.
			port := program(t, address, func(c *net.TCPConn) {
				all, _ := io.ReadAll(c)
				_, _ = c.Write(append([]byte("got: "), all...))
			})
			c := dial(t, to, port)
			data := make([]byte, 3<<20)
			_, _ = rand.Read(data)
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 100000)
				wrote, err := c.Write(rest[:n])
				require.NoError(t, err)
				require.Equal(t, n, wrote)
				rest = rest[n:]
			}
			require.NoError(t, c.CloseWrite())
			require.NoError(t, c.CloseWrite(), "twice is fine")
			_, err := c.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed)
			answer, err := io.ReadAll(c)
			require.NoError(t, err)
			require.True(t, bytes.Equal(append([]byte("got: "), data...), answer))
			require.NoError(t, c.Close())
		})
	}
}

func TestTheProgramSeesTheEnd(t *testing.T) {
	to, _ := daemon(t)
	ended := make(chan error, 1)
	port := program(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		ended <- err
		_, _ = io.Copy(c, endless{}) // Does not stop by itself: the tunnel must stop it.
	})
	c := dial(t, to, port)
	_, err := c.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, <-ended)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestASilentProgramIsLetGoWhenTheFarSideIsGone(t *testing.T) {
	to, _ := daemon(t)
	let := make(chan struct{})
	port := program(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.Copy(io.Discard, c)
		// Says nothing and keeps the connection: only a write tells that the far side is gone.
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				close(let)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	require.NoError(t, dial(t, to, port).Close())
	select {
	case <-let:
	case <-time.After(patience):
		t.Fatal("the program's connection is kept")
	}
}

func TestABreakNeverLooksLikeAnEnd(t *testing.T) {
	t.Run("program resets", func(t *testing.T) {
		to, _ := daemon(t)
		port := program(t, "127.0.0.1:0", func(c *net.TCPConn) {
			_, _ = c.Write([]byte("part"))
			_, _ = c.Read(make([]byte, 1))
			_ = c.SetLinger(0)
		})
		c := dial(t, to, port)
		part := make([]byte, 4)
		_, err := io.ReadFull(c, part)
		require.NoError(t, err)
		_, err = c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadAll(c)
		require.ErrorContains(t, err, "tunnel broken")
		require.NotErrorIs(t, err, io.EOF)
	})
	t.Run("daemon dies", func(t *testing.T) {
		to, cut := daemon(t)
		broken := make(chan error, 1)
		port := program(t, "127.0.0.1:0", func(c *net.TCPConn) {
			_, err := c.Read(make([]byte, 1))
			broken <- err
		})
		c := dial(t, to, port)
		cut()
		_, err := io.ReadAll(c)
		require.ErrorContains(t, err, "tunnel broken")
		require.Error(t, <-broken)
	})
	t.Run("far side aborts", func(t *testing.T) {
		to, _ := daemon(t)
		broken := make(chan error, 1)
		port := program(t, "127.0.0.1:0", func(c *net.TCPConn) {
			_, err := io.Copy(io.Discard, c)
			broken <- err
		})
		c := dial(t, to, port)
		c.Abort()
		require.Error(t, <-broken, "the program must not take it for an end")
	})
}

func TestErrors(t *testing.T) {
	to, _ := daemon(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	_, err = tunnel.Dial(t.Context(), to, closed)
	require.ErrorIs(t, err, tunnel.ErrPortClosed)
	for name, change := range map[string]func(*tunnel.Target){
		"wrong secret": func(to *tunnel.Target) { to.Control = "other" },
		"no daemon": func(to *tunnel.Target) {
			to.Dial = func(context.Context) (net.Conn, error) { return nil, os.ErrNotExist }
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := to
			change(&wrong)
			_, err := tunnel.Dial(t.Context(), wrong, closed)
			require.Error(t, err)
			require.NotErrorIs(t, err, tunnel.ErrPortClosed)
		})
	}
	for _, port := range []int{0, -1, 65536} {
		_, err := tunnel.Dial(t.Context(), to, port)
		require.Error(t, err)
		require.NotErrorIs(t, err, tunnel.ErrPortClosed)
	}
}

func TestDeadline(t *testing.T) {
	to, _ := daemon(t)
	port := program(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	c := dial(t, to, port)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestHTTPThroughTheTunnel(t *testing.T) {
	to, _ := daemon(t)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.Copy(w, r.Body)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		kind, text, err := ws.Read(r.Context())
		if err == nil {
			_ = ws.Write(r.Context(), kind, text)
		}
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	defer app.Close()
	port := app.Listener.Addr().(*net.TCPAddr).Port
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return tunnel.Dial(ctx, to, port)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for range 3 {
		resp, err := client.Post("http://app/", "text/plain", bytes.NewReader(make([]byte, 1<<20)))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.EqualValues(t, 1<<20, n)
		require.NoError(t, resp.Body.Close())
	}
	ws, _, err := websocket.Dial(t.Context(), "ws://app/", &websocket.DialOptions{HTTPClient: client})
	require.NoError(t, err)
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte("hello")))
	_, text, err := ws.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	require.NoError(t, ws.CloseNow())
}
