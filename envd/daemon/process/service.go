// Package process is envd's process service over the operating system: it starts programs, fans their output
// out to every client that follows them, and keeps the exit of each for a while for clients that come late.
//
// A process belongs to the daemon and not to the call that started it: a client that goes away leaves it
// running, and its output is then read and thrown away. Only a call's own time limit ends it.
package process

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/isthmus/isthmus/envd/daemon/identity"
	"github.com/isthmus/isthmus/envd/daemon/journal"
	"github.com/isthmus/isthmus/envd/daemon/spawn"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// defaultPath is the PATH of processes when the daemon has none of its own.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Config is what the service works with.
type Config struct {
	// Users knows the users and the default folder.
	Users *identity.Resolver
	// Reaper starts and collects; it must be running.
	Reaper *spawn.Reaper
	// Journal notes starts and ends.
	Journal *journal.Journal
	// Environment answers the sandbox-wide variables at the time of a start.
	Environment func() map[string]string
}

// Service implements the process service. It is safe for use by several goroutines.
type Service struct {
	config Config
	path   string
	// noGroups says that the user namespace forbids setting groups.
	noGroups bool

	table   *table
	chunks  chunks
	phantom atomic.Uint32
	// work counts the goroutines that follow processes.
	work sync.WaitGroup
}

var _ processconnect.ProcessHandler = (*Service)(nil)

// New makes the service.
func New(c Config) *Service {
	s := &Service{config: c, path: os.Getenv("PATH"), table: newTable()}
	if s.path == "" {
		s.path = defaultPath
	}
	if groups, err := os.ReadFile("/proc/self/setgroups"); err == nil {
		s.noGroups = strings.TrimSpace(string(groups)) == "deny"
	}
	return s
}

// Close kills what still runs and returns when nothing of the service is left. No call may be running.
func (s *Service) Close() {
	for _, r := range s.table.all() {
		r.signal(killed)
	}
	s.work.Wait()
	s.table.close()
}
