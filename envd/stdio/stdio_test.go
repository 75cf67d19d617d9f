package stdio_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd/stdio"
)

const patience = 30 * time.Second

// stream is one end of the input and output of a program.
type stream struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stream) Close() error { return errors.Join(s.ReadCloser.Close(), s.WriteCloser.Close()) }

// link connects both ends by a pair of pipes; each connection is served by the daemon.
func link(t *testing.T, daemon func(net.Conn)) (*stdio.Link, context.CancelFunc) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
				daemon(c)
			})
		}
	})
	toBox, fromFacade, err := os.Pipe()
	require.NoError(t, err)
	toFacade, fromBox, err := os.Pipe()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- stdio.Serve(ctx, stream{toBox, fromBox}, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		})
	}()
	opened, err := stdio.Open(t.Context(), stream{toFacade, fromFacade})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = opened.Close()
		select {
		case err := <-served:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the end in the box does not end")
		}
		cancel()
		_ = l.Close()
		serving.Wait()
	})
	return opened, cancel
}

func dial(t *testing.T, l *stdio.Link) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel() // It bounds the opening only.
	c, err := l.Dial(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// answering reads to the end and then answers it all.
func answering(c net.Conn) {
	all, _ := io.ReadAll(c)
	_, _ = c.Write(append([]byte("got: "), all...))
}

func TestConnectionsSideBySide(t *testing.T) {
	l, _ := link(t, answering)
	var all sync.WaitGroup
	for range 20 {
		c := dial(t, l)
		data := make([]byte, 300_001)
		_, _ = rand.Read(data)
		all.Go(func() {
			if _, err := c.Write(data); err != nil {
				t.Errorf("write: %v", err)
			}
			if err := c.(*stdio.Conn).CloseWrite(); err != nil {
				t.Errorf("close write: %v", err)
			}
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(append([]byte("got: "), data...), got) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

func TestEachByteIsPassedOnAtOnce(t *testing.T) {
	l, _ := link(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	c := dial(t, l)
	for range 100 {
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
	}
}

func TestConnectionsThatStandStillDoNotStopOthers(t *testing.T) {
	hold := make(chan struct{})
	l, _ := link(t, func(c net.Conn) {
		kind := make([]byte, 1)
		if _, err := io.ReadFull(c, kind); err != nil {
			return
		}
		if kind[0] == 's' {
			<-hold // reads nothing
			return
		}
		_, _ = io.Copy(c, c)
	})
	defer close(hold)
	var stuck sync.WaitGroup
	var still []net.Conn
	for range 40 {
		c := dial(t, l)
		stuck.Go(func() {
			_, _ = c.Write([]byte("s"))
			_, _ = c.Write(make([]byte, 1<<20))
		})
		still = append(still, c)
	}
	defer func() {
		for _, c := range still {
			_ = c.Close()
		}
		stuck.Wait()
	}()
	c := dial(t, l)
	_, err := c.Write([]byte("e" + "hello"))
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestABreakNeverLooksLikeAnEnd(t *testing.T) {
	begin := func(c net.Conn) { _, _ = c.Write([]byte("part")) }
	for name, test := range map[string]struct {
		daemon func(net.Conn)
		do     func(*stdio.Link, context.CancelFunc)
	}{
		"the daemon resets": {func(c net.Conn) {
			begin(c)
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		}, nil},
		"the box's end dies": {func(c net.Conn) { begin(c); _, _ = io.Copy(io.Discard, c) }, func(_ *stdio.Link, cancel context.CancelFunc) { cancel() }},
		"the link is closed": {func(c net.Conn) { begin(c); _, _ = io.Copy(io.Discard, c) }, func(l *stdio.Link, _ context.CancelFunc) { _ = l.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			l, cancel := link(t, test.daemon)
			c := dial(t, l)
			_, err := io.ReadFull(c, make([]byte, 4))
			require.NoError(t, err)
			if test.do != nil {
				test.do(l, cancel)
			} else {
				_, err = c.Write([]byte("x"))
				require.NoError(t, err)
			}
			_, err = io.ReadAll(c)
			require.Error(t, err)
			require.NotErrorIs(t, err, io.EOF)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	}
}

func TestTheEndOfALinkIsSeen(t *testing.T) {
	l, cancel := link(t, answering)
	require.True(t, l.Alive())
	cancel()
	select {
	case <-l.Done():
	case <-time.After(patience):
		t.Fatal("nobody says that the stream has ended")
	}
	require.False(t, l.Alive())
	_, err := l.Dial(t.Context())
	require.Error(t, err)
}

func TestDialsThatFail(t *testing.T) {
	t.Run("given up", func(t *testing.T) {
		l, _ := link(t, answering)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Dial(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("no daemon", func(t *testing.T) {
		a, b := net.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- stdio.Serve(context.Background(), b, func(context.Context) (net.Conn, error) { return nil, errors.New("it is not there") })
		}()
		l, err := stdio.Open(t.Context(), a)
		require.NoError(t, err)
		_, err = l.Dial(t.Context())
		require.ErrorContains(t, err, "it is not there")
		require.NoError(t, l.Close())
		require.NoError(t, <-served)
	})
}

func TestDeadline(t *testing.T) {
	l, _ := link(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := dial(t, l)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = c.Write([]byte("x"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
