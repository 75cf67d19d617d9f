//go:build linux

package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/egress"
	"github.com/isthmus/isthmus/adapters/local/idrange"
)

// The folders below DataDir/local.
const (
	dirBoxes = "boxes"
	dirIDs   = "ids"
	dirAgent = "agent"
	dirTools = "tools"
	dirDisks = "disks"
	// dirSnapshots holds a folder for each snapshot.
	dirSnapshots = "snapshots"
)

// The defaults of Config.
const (
	defaultFirstID   = 0x70000000
	defaultProcesses = 4096
)

// Local is the adapter. It is safe for concurrent use.
type Local struct {
	config      Config
	log         *slog.Logger
	dir         string // DataDir/local
	lock        *os.File
	tier        tier
	description adapters.Description
	envd        string // our copy of the binary
	tools       string // the layer above every image

	ids     *idrange.Leases // nil as an ordinary user
	cgroups *cgroup.Tree    // nil where there are none
	disks   bool            // each box has a disk of its own
	ipv6    bool            // the machine has a way to IPv6
	flows   *egress.Budget  // of all boxes' traffic

	boxes      *boxes
	turns      *turns
	background context.Context // ends when this process lets go of the boxes
	letGo      context.CancelFunc
	running    sync.WaitGroup
}

// Open prepares the data folder, proves with a throw-away box that boxes can be made here, takes the boxes
// of an earlier facade over and removes the remains of those that ended. Its errors say what to do.
func Open(config Config) (*Local, error) {
	l, err := prepare(config)
	if err != nil {
		return nil, err
	}
	if full := l.roomy(); full != nil && l.occupied() {
		l.log.Warn("it was not tried whether sandboxes can be made: there is no room for one", "error", full)
	} else if err := l.probe(l.background); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := errors.Join(l.sweep(), l.adopt(l.background)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// occupied reports whether an earlier facade has left boxes.
func (l *Local) occupied() bool {
	entries, err := os.ReadDir(filepath.Join(l.dir, dirBoxes))
	return err == nil && len(entries) > 0
}

// prepare makes a Local that knows of no box yet.
func prepare(config Config) (*Local, error) {
	if config.FirstID == 0 {
		config.FirstID = defaultFirstID
	}
	if config.Processes == 0 {
		config.Processes = defaultProcesses
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := chooseTier(config.Isolation)
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, err
	}
	l := &Local{config: config, log: config.Logger, dir: filepath.Join(data, "local"), tier: t, boxes: &boxes{table: map[string]entry{}}, turns: &turns{held: map[string]*turn{}}}
	l.background, l.letGo = context.WithCancel(context.Background())
	if err := l.resources(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.description = l.describe()
	return l, nil
}

// resources opens what boxes are made with.
func (l *Local) resources() error {
	// A box's folder is found by descriptor; nobody else on this machine needs a way into the data folder.
	for _, folder := range []string{dirBoxes, dirSnapshots} {
		if err := os.MkdirAll(filepath.Join(l.dir, folder), 0o700); err != nil {
			return err
		}
	}
	var err error
	if l.lock, err = Lock(filepath.Join(l.dir, "lock")); err != nil {
		return err
	}
	// Whatever our own starter left open must not come into a box.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if l.envd, l.tools, err = InstallAgents(l.dir, l.config.EnvdPath, l.config.SudoPath); err != nil {
		return err
	}
	l.ipv6 = hasIPv6()
	if l.flows, err = Flows(); err != nil {
		return err
	}
	if l.cgroups, err = cgroup.Find(); err != nil {
		l.log.Info("no control groups: memory, cpu and processes are limited only as far as a process can limit itself", "error", err)
	}
	if !l.tier.root {
		return nil
	}
	l.disks = canAttach()
	if err := makeRoom(); err != nil {
		l.log.Info("all boxes share a ceiling of this machine that is too low for many of them", "error", err)
	}
	var others []string
	for _, dir := range l.config.Neighbours {
		others = append(others, filepath.Join(dir, "local", dirIDs))
	}
	l.ids, err = idrange.Open(filepath.Join(l.dir, dirIDs), l.config.FirstID, l.config.LastID, others...)
	return err
}

// Lock keeps a second facade off the data folder. It is given up by the end of the process, however it ends. It
// is the process's own lock: one that belongs to the open file would live on in a child that was being started.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		_ = f.Close()
		return nil, adapters.Errorf(adapters.KindPrecondition, "another Isthmus uses this data folder: stop it, or name another folder")
	}
	return f, nil
}

// canAttach reports whether boxes can have disks of their own.
func canAttach() bool {
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// Run keeps the boxes' traffic and watches going until ctx ends, and returns when all of it has ended. The
// boxes stay alive.
func (l *Local) Run(ctx context.Context) error {
	<-ctx.Done()
	return l.Close()
}

// Close lets go of the boxes and of the data folder; the boxes stay alive. A second time is fine.
func (l *Local) Close() error {
	l.letGo()
	l.running.Wait()
	for _, b := range l.boxes.all() {
		b.close()
	}
	for _, left := range l.boxes.remaining() {
		if left.box != nil {
			left.box.close()
		}
	}
	if l.lock == nil {
		return nil
	}
	if err := l.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
