//go:build linux

package boxes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
)

// OnlyExec is the cloud as one that lets programs be started in a box and nothing else.
type OnlyExec struct{ *Cloud }

// OnePort is the cloud as one that also lets one port of a box be reached.
type OnePort struct {
	*Cloud
	// Port is the one.
	Port int
	// Dialer gives connections to the port, as a place on the same network does. Otherwise there is a URL of
	// an HTTP front, as clouds have, which wants a header.
	Dialer bool
}

// headerKey is what the front wants to see.
const headerKey = "Boxes-Key"

// Address is the way to the port.
func (o OnePort) Address(_ context.Context, boxID string) (adapters.Endpoint, error) {
	m, err := o.living(boxID)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	if o.Dialer {
		dial := func(ctx context.Context) (net.Conn, error) { return m.dial(ctx, o.Port) }
		return adapters.Endpoint{URL: &url.URL{Scheme: "http", Host: boxID}, Dial: dial}, nil
	}
	return m.front(o.Port)
}

// dial connects to a port in the network of the box.
func (m *machine) dial(ctx context.Context, port int) (conn net.Conn, err error) {
	local.OnThread(func() {
		if err = m.enterNetwork(); err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
	})
	return conn, err
}

func (m *machine) enterNetwork() error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", m.process()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd))
}

// front is the HTTP front of one box.
type front struct {
	address string
	key     string
	close   func()
}

// front starts the front of the box, once.
func (m *machine) front(port int) (adapters.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.port == nil {
		started, err := m.startFront(port)
		if err != nil {
			return adapters.Endpoint{}, adapters.Wrap(adapters.KindUnavailable, err, "the port has no address")
		}
		m.port = started
	}
	return adapters.Endpoint{URL: &url.URL{Scheme: "http", Host: m.port.address}, Header: http.Header{headerKey: {m.port.key}}}, nil
}

func (m *machine) startFront(port int) (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{address: listener.Addr().String(), key: rand.Text()}
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, port) },
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "box", r.In.Host
			r.Out.Header.Del(headerKey)
		},
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerKey) != f.key {
			http.Error(w, "this address is for whoever has its key", http.StatusForbidden)
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})}
	f.close = func() {
		_ = server.Close()
		transport.CloseIdleConnections()
	}
	go func() { _ = server.Serve(listener) }()
	return f, nil
}
