// Package server assembles Isthmus from its parts and runs it: the fleet, the control plane and the gateway
// behind one public listener, administration on a socket in the data folder, and the operator's listener.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/api"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/edge"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/server/gateway"
	"github.com/isthmus/isthmus/server/listen"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
)

// grace is how long open requests may go on after the stop. Streams never end by themselves, so it is short.
const grace = 3 * time.Second

// Options are the parts that a server is made of. The caller opens and closes them.
type Options struct {
	Config     config.Config
	AdminToken string
	// APIKey is shown to whoever asks on the socket; empty when it is not known in clear.
	APIKey  string
	Store   *store.Store
	Secrets fleet.Secrets
	Pools   []fleet.Pool
	// Reload loads the configuration again, and calls Server.Reload; nil: that cannot be done. It returns the changed
	// fields that wait for a new start.
	Reload     func(context.Context) ([]string, error)
	KillOnExit bool
	Log        *slog.Logger
}

// Server is one Isthmus. It is made, run once, and is then of no more use.
type Server struct {
	options  Options
	log      *slog.Logger
	fleet    *fleet.Fleet
	rules    atomic.Pointer[translate.Rules]
	public   net.Listener
	operator net.Listener // nil: none
	socket   net.Listener
	where    admin.Environment
}

// New opens the listeners, so that an address that is taken is known at once, and makes a server of them. It
// serves nothing before Run, which must be called.
func New(o Options) (*Server, error) {
	f, err := fleet.New(fleet.Config{
		Store: o.Store, Pools: o.Pools, Ranking: o.Config.Ranking.Settings(), Secrets: o.Secrets, TeamConcurrency: o.Config.Limits.TeamConcurrency,
		LongestLife: o.Config.Limits.LongestLife, KillOnExit: o.KillOnExit, Logger: o.Log,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, log: o.Log, fleet: f}
	s.rules.Store(o.Config.Rules())
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.where = Where(o.Config, s.public.Addr())
	s.where.APIKey = o.APIKey
	return s, nil
}

func (s *Server) open() error {
	var err error
	if s.public, err = listenPublic(s.options.Config); err != nil {
		return err
	}
	if s.operator, err = listenOperator(s.options.Config); err != nil {
		return err
	}
	s.socket, err = admin.ListenSocket(s.options.Config.Data)
	return err
}

// close closes the listeners that are open.
func (s *Server) close() error {
	var errs []error
	for _, listener := range []net.Listener{s.public, s.operator, s.socket} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.socket != nil {
		errs = append(errs, admin.RemoveSocket(s.options.Config.Data))
	}
	return errors.Join(errs...)
}

// Run serves until ctx ends, and returns when everything that it started has ended. ready is called once,
// when clients may come.
//
// It stops from the outside in: nobody new is let in and open requests get a moment, then the fleet stops,
// which with KillOnExit ends all sandboxes, then the store's housekeeping.
func (s *Server) Run(ctx context.Context, ready func(admin.Environment)) error {
	inner, stopInner := context.WithCancel(context.WithoutCancel(ctx))
	defer stopInner()
	outer, stopOuter := context.WithCancel(ctx)
	defer stopOuter()
	var innards errgroup.Group
	innards.Go(func() error { return s.options.Store.Engine().Run(inner) })
	innards.Go(func() error {
		defer stopOuter() // without the fleet there is nothing to serve
		return s.fleet.Run(inner)
	})
	err := s.serve(outer, ready)
	stopInner()
	return errors.Join(err, innards.Wait(), s.close())
}

// serve runs the listeners until ctx ends or one of them fails.
func (s *Server) serve(ctx context.Context, ready func(admin.Environment)) error {
	select {
	case <-s.fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	control, err := api.New(api.Config{Fleet: s.fleet, Keys: s.options.Store.Keys, Domain: s.where.Domain, Rules: s.rules.Load,
		CallsPerSecond: s.options.Config.Limits.CallsPerSecond, Log: s.log})
	if err != nil {
		return err
	}
	data := gateway.New(gateway.Config{Sandboxes: s.fleet, Log: s.log})
	defer data.Close()
	public, err := listen.New(listen.Config{
		Handler:     edge.New(s.domains(), data, control),
		Certificate: s.options.Config.TLS.Cert, Key: s.options.Config.TLS.Key, Grace: grace, Log: s.log,
		Connections: s.options.Config.Limits.Connections,
	})
	if err != nil {
		return err
	}
	operator := admin.New(admin.Config{
		Store: s.options.Store, Fleet: s.fleet, Placement: s, DataDir: s.options.Config.Data, Environment: s.where, Log: s.log,
	})
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return public.Run(serving, s.public) })
	group.Go(func() error { return run(serving, s.socket, operator.Socket(), s.log) })
	if s.operator != nil {
		group.Go(func() error { return run(serving, s.operator, s.operatorRoutes(operator), s.log) })
	}
	ready(s.where)
	return group.Wait()
}

// domains are those below which sandboxes have host names.
func (s *Server) domains() []string {
	if s.options.Config.Domain == "" {
		return []string{s.where.Domain}
	}
	return []string{s.where.Domain, localDomain(s.public.Addr())}
}

// run serves a plain handler until ctx ends.
func run(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: grace, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(short) != nil {
			_ = server.Close()
		}
	})()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return err
}
