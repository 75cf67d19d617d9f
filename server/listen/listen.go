// Package listen serves one handler on one address: HTTP/1.1, HTTP/2 without TLS, and, with a certificate,
// TLS on the same port, told apart by the first byte that a client sends.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Times and sizes of a connection. Reading a body and writing an answer have no limit: streams last.
const (
	headerTime = 30 * time.Second
	// idleTime is longer than clients keep connections (300 s), so that they close them, not we.
	idleTime = 620 * time.Second
	// streamsEach is how many calls one HTTP/2 connection may have open; clients open hundreds of streams.
	streamsEach = 1000
	// connectionWindow is what a connection's clients may send ahead, well above streamWindow, so that one
	// stalled upload does not stop the others.
	connectionWindow = 16 << 20
	streamWindow     = 1 << 20
)

// Config is what is served and how.
type Config struct {
	// Handler answers.
	Handler http.Handler
	// Certificate and Key are PEM files, read again when they change. Both or none; with none, no TLS.
	Certificate, Key string
	// Grace is how long open requests may go on when the context ends, before their contexts end and their
	// connections are closed.
	Grace time.Duration
	// Connections bounds the connections that are open at one time; 0: half of the descriptors that this process may
	// have.
	Connections int
	// Log takes what net/http has to say about connections, at debug level.
	Log *slog.Logger
}

// Server serves one listener.
type Server struct {
	server *http.Server
	secure bool
	most   int
	grace  time.Duration
	abort  context.CancelFunc // ends the contexts of all requests

	mu       sync.Mutex
	stopped  bool
	requests sync.WaitGroup // grows only while not stopped
}

// New reads the certificate and makes a server.
func New(c Config) (*Server, error) {
	if (c.Certificate == "") != (c.Key == "") {
		return nil, errors.New("TLS needs a certificate and a key: give both files or none")
	}
	requests, abort := context.WithCancel(context.Background())
	s := &Server{secure: c.Certificate != "", most: c.Connections, grace: c.Grace, abort: abort}
	s.server = &http.Server{
		Handler:           s.counted(c.Handler),
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       withRoom,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          streamsEach,
			MaxReceiveBufferPerConnection: connectionWindow,
			MaxReceiveBufferPerStream:     streamWindow,
		},
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetHTTP2(true)
	s.server.Protocols.SetUnencryptedHTTP2(true)
	if c.Certificate != "" {
		pair, err := newPair(c.Certificate, c.Key, c.Log)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate: %w", err)
		}
		s.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}
	}
	return s, nil
}

// counted counts the requests that are being answered: net/http does not wait for those whose connection it
// closed, nor for WebSockets.
func (s *Server) counted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.admit() {
			panic(http.ErrAbortHandler)
		}
		defer s.requests.Done()
		defer occupy(r.Context())()
		handler.ServeHTTP(w, r)
	})
}

func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.requests.Add(1)
	}
	return !s.stopped
}

// Run serves the listener until ctx ends or it fails, and returns when all handlers have returned and the
// listener is closed. It returns nil when ctx ended.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	group, running := errgroup.WithContext(ctx)
	listener = newRoom(listener, s.most)
	if s.secure {
		plain, secure := split(listener, headerTime)
		group.Go(func() error { return unlessClosed(s.server.Serve(jsonListener{plain})) })
		group.Go(func() error { return unlessClosed(s.server.ServeTLS(secure, "", "")) })
	} else {
		group.Go(func() error { return unlessClosed(s.server.Serve(jsonListener{listener})) })
	}
	group.Go(func() error {
		<-running.Done()
		return s.stop()
	})
	return group.Wait()
}

// stop lets open requests end for the time of grace, then breaks them off, and returns when they have ended.
func (s *Server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	var err error
	if s.server.Shutdown(ctx) != nil {
		err = s.server.Close()
	}
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.abort()
	s.requests.Wait()
	return err
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
