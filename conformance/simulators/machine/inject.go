//go:build linux

package machine

import (
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters/local/egress"
)

// injector puts headers into the requests of one box, in place of passing them on as they are. Programs see nothing of
// it, but that the certificates are the cloud's.
type injector struct{ box *Box }

// interceptor is who puts headers into the requests of a box; nil: nobody.
func (c *Cloud) interceptor(id string) egress.Interceptor {
	c.mu.Lock()
	b := c.boxes[id]
	c.mu.Unlock()
	if b == nil || len(b.headers().headers) == 0 {
		return nil
	}
	return injector{b}
}

// headers are those that the box's network puts into requests.
func (b *Box) headers() injected {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.injected
}

// of are the headers for a host, over TLS or not: of all patterns that mean it.
func (i injector) of(host string, secure bool) map[string]string {
	found, all := map[string]string{}, i.box.headers()
	if all.secureOnly && !secure {
		return found
	}
	for pattern, headers := range all.headers {
		below, wide := strings.CutPrefix(strings.ToLower(pattern), "*")
		if host == below && !wide || wide && strings.HasSuffix(host, below) {
			maps.Copy(found, headers)
		}
	}
	return found
}

// Wants reports whether there are headers for a host.
func (i injector) Wants(host string) bool { return len(i.of(host, true)) > 0 }

// headerTime bounds the wait for the head of a request, within the connection's own end.
const headerTime = time.Minute

// Intercept passes the requests of a connection on, with the headers as they are then.
func (i injector) Intercept(ctx context.Context, program net.Conn, host string, secure bool, dial func(context.Context) (net.Conn, error)) {
	connection := &single{Conn: program, closed: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 1,
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		TLSClientConfig: &tls.Config{ServerName: host, RootCAs: i.box.cloud.roots, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if secure {
		scheme = "https"
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport, ErrorLog: i.box.cloud.errorLog(),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = scheme, host, p.In.Host
			if hostOf(p.In.Host) != host {
				return // another host's secret is not for this one
			}
			for name, value := range i.of(host, secure) {
				p.Out.Header.Set(name, value)
			}
		},
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: headerTime, ErrorLog: i.box.cloud.errorLog()}
	defer server.Close()
	_ = server.Serve(&listener{connection: i.box.cloud.secured(connection, host, secure), closed: connection.closed})
}

// secured is the connection without its TLS, which the cloud speaks in the host's name.
func (c *Cloud) secured(connection net.Conn, host string, secure bool) net.Conn {
	if !secure {
		return connection
	}
	return tls.Server(connection, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.authority.of(host) },
	})
}

// errorLog is where broken connections are told of.
func (c *Cloud) errorLog() *log.Logger { return slog.NewLogLogger(c.log.Handler(), slog.LevelDebug) }

// trust has the programs of a box that gets headers trust the cloud's certificates: those that look where Debian keeps
// what is trusted.
func (b *Box) trust(ctx context.Context) error {
	if len(b.headers().headers) == 0 {
		return nil
	}
	_, err := b.sh(ctx, trusting, b.cloud.authority.pem())
	return err
}

const trusting = `own=/usr/local/share/ca-certificates/cloud.crt; all=/etc/ssl/certs/ca-certificates.crt
[ ! -e "$own" ] || exit 0
mkdir -p "${own%/*}" && printf %s "$1" >"$own" && { [ ! -e "$all" ] || cat "$own" >>"$all"; }`

// hostOf is the name in a Host header.
func hostOf(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		header = name
	}
	return strings.ToLower(strings.TrimSuffix(header, "."))
}

// single is the one connection of a listener; closed ends with it.
type single struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// listener has one connection to accept, and waits for its end then.
type listener struct {
	connection net.Conn
	accepted   bool
	closed     <-chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	if !l.accepted {
		l.accepted = true
		return l.connection, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *listener) Close() error   { return l.connection.Close() }
func (l *listener) Addr() net.Addr { return l.connection.LocalAddr() }
