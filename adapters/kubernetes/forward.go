package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	//lint:ignore SA1019 client-go itself still speaks in these types
	"k8s.io/apimachinery/pkg/util/httpstream"
)

// forwards are the open streams of pods/portforward, one for each pod that is in use: it carries any number of
// connections.
type forwards struct {
	mu     sync.Mutex
	all    map[string]*forward
	closed bool
}

// forward is the stream of one pod.
type forward struct {
	opening chan struct{} // held while it is opened
	conn    httpstream.Connection
	last    atomic.Uint64
}

var errClosed = errors.New("the pool is closed")

// dialForward opens a connection to envd's port in a pod.
func (c *Cluster) dialForward(ctx context.Context, pod string) (net.Conn, error) {
	one, err := c.forwards.of(pod)
	if err != nil {
		return nil, err
	}
	select {
	case one.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	stream, err := one.connection(func() (httpstream.Connection, error) { return c.openForward(pod) })
	<-one.opening
	if err != nil {
		return nil, err
	}
	return one.dial(stream)
}

// connection returns the stream of a pod, opened when there is none that lives.
func (f *forward) connection(open func() (httpstream.Connection, error)) (httpstream.Connection, error) {
	if f.conn != nil {
		select {
		case <-f.conn.CloseChan():
		default:
			return f.conn, nil
		}
	}
	conn, err := open()
	if err != nil {
		return nil, err
	}
	f.conn = conn
	return conn, nil
}

// openForward asks the API server for the stream, over a WebSocket, or as older servers have it.
func (c *Cluster) openForward(pod string) (httpstream.Connection, error) {
	address := c.core.RESTClient().Post().Resource("pods").Namespace(c.config.Namespace).Name(pod).SubResource("portforward").URL()
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(address, c.config.Client)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config.Client)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	dialer := portforward.NewFallbackDialer(overWebSocket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	return conn, err
}

// dial opens a pair of streams, data and errors, which the protocol portforward.k8s.io takes for one connection.
func (f *forward) dial(conn httpstream.Connection) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(envdPort))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatUint(f.last.Add(1), 10))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forward a connection: %w", err)
	}
	_ = failures.Close() // our half: nothing is written there
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		conn.RemoveStreams(failures)
		return nil, fmt.Errorf("forward a connection: %w", err)
	}
	s := &forwardedConn{Stream: data}
	go func() { // it ends with the connection
		text, _ := io.ReadAll(io.LimitReader(failures, 4<<10))
		if len(text) > 0 {
			s.fault.Store(pointer(string(text)))
			_ = data.Reset()
		}
		conn.RemoveStreams(failures)
	}()
	s.end = func() {
		_ = data.Close()
		_ = data.Reset()
		_ = failures.Reset()
		conn.RemoveStreams(data)
	}
	return s, nil
}

func (f *forwards) of(pod string) (*forward, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.all == nil {
		f.all = map[string]*forward{}
	}
	one := f.all[pod]
	if one == nil {
		one = &forward{opening: make(chan struct{}, 1)}
		f.all[pod] = one
	}
	return one, nil
}

// drop ends the stream of a pod.
func (f *forwards) drop(pod string) {
	f.mu.Lock()
	one := f.all[pod]
	delete(f.all, pod)
	f.mu.Unlock()
	if one != nil {
		one.close()
	}
}

func (f *forwards) close() {
	f.mu.Lock()
	all := f.all
	f.all, f.closed = nil, true
	f.mu.Unlock()
	for _, one := range all {
		one.close()
	}
}

func (f *forward) close() {
	f.opening <- struct{}{}
	defer func() { <-f.opening }()
	if f.conn != nil {
		_ = f.conn.Close()
	}
}

// forwardedConn is one connection. A deadline that passes ends it.
type forwardedConn struct {
	httpstream.Stream
	end   func()
	once  sync.Once
	fault atomic.Pointer[string]

	mu    sync.Mutex
	timer *time.Timer
}

var _ net.Conn = (*forwardedConn)(nil)

// Read says what the far end said of a break, if it did.
func (s *forwardedConn) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if text := s.fault.Load(); err != nil && text != nil {
		err = fmt.Errorf("forward a connection: %s", *text)
	}
	return n, err
}

// CloseWrite ends the direction to the pod.
func (s *forwardedConn) CloseWrite() error { return s.Stream.Close() }

// Close ends both directions.
func (s *forwardedConn) Close() error {
	_ = s.SetDeadline(time.Time{})
	s.once.Do(s.end)
	return nil
}

// LocalAddr is a name for logs.
func (s *forwardedConn) LocalAddr() net.Addr { return forwardAddress{} }

// RemoteAddr is a name for logs.
func (s *forwardedConn) RemoteAddr() net.Addr { return forwardAddress{} }

// SetDeadline ends the connection at t; the zero time is never.
func (s *forwardedConn) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), func() { s.once.Do(s.end) })
	}
	return nil
}

// SetReadDeadline is as SetDeadline: a connection whose reader gave up serves nobody.
func (s *forwardedConn) SetReadDeadline(t time.Time) error { return s.SetDeadline(t) }

// SetWriteDeadline is as SetDeadline.
func (s *forwardedConn) SetWriteDeadline(t time.Time) error { return s.SetDeadline(t) }

type forwardAddress struct{}

// Network names the protocol.
func (forwardAddress) Network() string { return "port-forward" }

// String is the same for all.
func (forwardAddress) String() string { return "port-forward" }
