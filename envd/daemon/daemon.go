// Package daemon is envd: the services that clients speak to inside a sandbox, over the operating system that
// it runs on, and the few internal routes by which the facade steers it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon/filesystem"
	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/daemon/journal"
	"github.com/isthmus/isthmus/envd/daemon/keep"
	"github.com/isthmus/isthmus/envd/daemon/process"
	"github.com/isthmus/isthmus/envd/daemon/spawn"
	"github.com/isthmus/isthmus/envd/tunnel"
)

// defaultUser runs commands when the configuration names nobody.
const defaultUser = "user"

const (
	// headerLimit bounds how long a request's headers may take.
	headerLimit = 30 * time.Second
	// idleLimit is longer than that of any proxy in front, so that the proxy is always the one to hang up.
	idleLimit = 640 * time.Second
)

// Options are what is not for the facade to decide.
type Options struct {
	// Root is the root file system in which users are looked up; empty means "/".
	Root string
	// StateDir gets the small files that programs may read; empty means /run/e2b.
	StateDir string
	// OnDeadline is called once the deadline has passed. It must not wait for Serve to return. Nil: Serve
	// ends by itself.
	OnDeadline func()
	// Orphans says that orphans come to this process and are its to collect; as PID 1 they always are.
	Orphans bool
	// Processes bounds the processes of each user; 0 is no limit of the daemon's.
	Processes uint64
	// BootID is what the kernel calls its start, where programs are shown something else; empty: what they are shown.
	BootID string
	// Keep is what a pause keeps the root file system with; nil: nothing is kept.
	Keep *keep.Keep
	// Logger gets the daemon's own faults; nil discards them.
	Logger *slog.Logger
}

// Daemon is one envd.
type Daemon struct {
	options   Options
	settings  *settings
	users     *identity.Resolver
	journal   *journal.Journal
	reaper    *spawn.Reaper
	process   *process.Service
	files     *filesystem.Service
	tree      *tree.Tree
	tunnel    *tunnel.Handler
	load      *load
	messages  *messages
	boxMemory uint64 // the box's, in bytes; 0: not known
	boxDisk   uint64 // as well
	space     space
	deadline  *deadline
	keeping   sync.Mutex
	gate      *gate
}

// New prepares a daemon. As PID 1 it will collect every orphan of its process namespace. The daemon starts
// processes from Serve on. The error is the kernel's.
func New(c envd.Config, o Options) (*Daemon, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.StateDir == "" {
		o.StateDir = "/run/e2b"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if c.DefaultUser == "" {
		c.DefaultUser = defaultUser
	}
	if err := spawn.Seal(); err != nil {
		return nil, fmt.Errorf("keep descriptors from programs: %w", err)
	}
	d := &Daemon{
		options:   o,
		settings:  newSettings(c),
		users:     identity.NewResolver(identity.NewDirectory(o.Root), c.DefaultUser, c.DefaultWorkdir),
		journal:   journal.New(),
		reaper:    spawn.NewReaper(o.Orphans || os.Getpid() == 1),
		tunnel:    tunnel.NewHandler(),
		load:      newLoad(),
		messages:  newMessages(),
		boxMemory: uint64(max(c.MemoryBytes, 0)),
		boxDisk:   uint64(max(c.DiskBytes, 0)),
		deadline:  newDeadline(c.Deadline),
		gate:      newGate(),
	}
	d.reaper.LimitProcesses(o.Processes)
	d.process = process.New(process.Config{
		Users: d.users, Reaper: d.reaper, Journal: d.journal, Environment: d.settings.environment,
	})
	d.tree = tree.New(d.users.Directory)
	d.files = filesystem.New(d.users, d.tree)
	return d, nil
}

// Serve answers clients until ctx ends or a listener fails, then kills what runs, ends every stream and
// returns. The facade's listener has every route and asks for the transport secret; the loopback listener is
// for programs in the sandbox and has only what clients may call. It may be nil. Serve is called once.
func (d *Daemon) Serve(ctx context.Context, facade, loopback net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.writeState()
	reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reaper errgroup.Group
	reaper.Go(func() error { d.reaper.Run(reaping); return nil })

	var group errgroup.Group
	serve := func(l net.Listener, h http.Handler) {
		group.Go(func() error {
			defer cancel()
			return d.serve(ctx, l, h)
		})
	}
	serve(facade, d.handler(true))
	if loopback != nil {
		serve(loopback, d.handler(false))
	}
	group.Go(func() error {
		d.deadline.run(ctx, func() {
			d.journal.Warn("deadline passed")
			if d.options.OnDeadline != nil {
				d.options.OnDeadline()
				return
			}
			cancel()
		})
		return nil
	})
	err := group.Wait()
	d.gate.close()
	d.files.Close()
	d.process.Close()
	stop()
	return errors.Join(err, reaper.Wait())
}

// serve runs one HTTP server. HTTP/2 is spoken without TLS too: whoever reaches the listener is the facade, a
// proxy of the box's provider, or the sandbox itself.
func (d *Daemon) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler: d.gate.guard(h), Protocols: protocols, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(d.options.Logger.Handler(), slog.LevelWarn),
	}
	// Connections are cut before their requests are told: a stream must break when the sandbox goes, for an
	// orderly end would be taken for one of the process.
	cut := sync.OnceFunc(func() {
		_ = server.Close()
		cancel()
	})
	defer cut()
	defer context.AfterFunc(ctx, cut)()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve envd: %w", err)
	}
	return nil
}
