//go:build linux

// Package modal is a server of Modal's protocol: the control plane (modal.client.ModalClient) and the command
// router of its sandboxes (modal.task_command_router.TaskCommandRouter), whose sandboxes are real processes on
// this machine. It enforces what the cloud enforces, and goes wrong on demand (Faults). What it knows of the
// protocol is from the published stubs and from Modal's own SDKs, which its tests run against it.
//
// It has one account, one workspace and one environment. Registry references are images of this machine.
package modal

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Config says how a server is. Zero fields are as the comments say.
type Config struct {
	// Cloud makes the boxes. It is the caller's, and outlives the server.
	Cloud *machine.Cloud
	// TokenID and TokenSecret are the one account; empty: ak-simulated and as-simulated.
	TokenID, TokenSecret string
	// Image is the machine's image for a registry reference; empty: there is no such image. Nil: the name of the
	// reference's last part chooses, and debian and ubuntu are base.
	Image func(reference string) string
	// MaxSandboxes is the workspace's limit of running sandboxes; 0: 1000.
	MaxSandboxes int
	// GPUs are the kinds that the cloud has; nil: T4, L4, A10G, L40S, A100-40GB, A100-80GB, H100, H200, B200.
	GPUs []string
	// TokenLife is how long an auth token and a router's token are good for; 0: 20 minutes.
	TokenLife time.Duration
	// Logger gets every call; nil: nothing is logged.
	Logger *slog.Logger
}

const defaultLimit = 1000

// leastPing is how often a client may look whether an idle connection still lives. The cloud's own clients do so twice
// a minute.
const leastPing = 10 * time.Second

// Server is a running server. It is safe for concurrent use.
type Server struct {
	config Config
	faults *Faults
	calls  *calls
	key    []byte // signs tokens
	ca     *authority
	url    string

	grpc    *grpc.Server
	serving sync.WaitGroup
	work    sync.WaitGroup // of sandboxes
	ctx     context.Context
	stop    context.CancelFunc

	mu        sync.Mutex
	apps      map[string]string // id by name
	secrets   map[string]map[string]string
	images    map[string]*image
	published map[string]tag
	sandboxes map[string]*sandbox
	tasks     map[string]*sandbox
}

// Start makes a server and has it serve at a free port of 127.0.0.1. It must be closed.
func Start(c Config) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("modal simulator: %w", err)
	}
	s, err := New(c, "http://"+listener.Addr().String())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.serving.Go(func() {
		if err := s.Serve(listener); err != nil {
			s.config.Logger.Error("modal simulator: serve", "err", err)
		}
	})
	return s, nil
}

// Serve answers until the listener, or the server, is closed.
func (s *Server) Serve(listener net.Listener) error { return s.grpc.Serve(listener) }

// New makes a server that will be reached at an address, http://HOST:PORT. It must be closed.
func New(c Config, address string) (*Server, error) {
	c.TokenID, c.TokenSecret = cmp.Or(c.TokenID, "ak-simulated"), cmp.Or(c.TokenSecret, "as-simulated")
	c.MaxSandboxes, c.TokenLife = cmp.Or(c.MaxSandboxes, defaultLimit), cmp.Or(c.TokenLife, 20*time.Minute)
	if c.Image == nil {
		c.Image = machineImage
	}
	if c.GPUs == nil {
		c.GPUs = []string{"T4", "L4", "A10G", "L40S", "A100-40GB", "A100-80GB", "H100", "H200", "B200"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	ca, err := newAuthority()
	if err != nil {
		return nil, fmt.Errorf("modal simulator: the certificate of the tunnels: %w", err)
	}
	s := &Server{
		config: c, faults: &Faults{}, calls: &calls{}, key: newKey(), ca: ca, url: address,
		apps: map[string]string{}, secrets: map[string]map[string]string{}, images: map[string]*image{}, published: map[string]tag{},
		sandboxes: map[string]*sandbox{}, tasks: map[string]*sandbox{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.StatsHandler(s.calls),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream),
	)
	pb.RegisterModalClientServer(s.grpc, &control{Server: s})
	pb.RegisterTaskCommandRouterServer(s.grpc, &router{Server: s})
	return s, nil
}

// maxMessage bounds one message, in bytes, as the SDKs do.
const maxMessage = 100 << 20

// control is the control plane, router the router of all tasks.
type (
	control struct {
		pb.UnimplementedModalClientServer
		*Server
	}
	router struct {
		pb.UnimplementedTaskCommandRouterServer
		*Server
	}
)

// URL is the address of the control plane, for MODAL_SERVER_URL.
func (s *Server) URL() string { return s.url }

// Certificate is the authority of the tunnels' certificates, in PEM.
func (s *Server) Certificate() []byte { return s.ca.pem }

// TLS is a client's configuration that trusts the tunnels.
func (s *Server) TLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca.pem)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Faults are the switches for what goes wrong.
func (s *Server) Faults() *Faults { return s.faults }

// Running is the number of sandboxes that have not ended.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running()
}

// Close ends all sandboxes and returns when nothing is left.
func (s *Server) Close() error {
	s.grpc.Stop()
	s.stop()
	s.serving.Wait()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, i := range s.images {
		failures = append(failures, i.remove())
	}
	return errors.Join(failures...)
}
