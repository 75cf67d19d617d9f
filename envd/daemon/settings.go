package daemon

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// settings is what the facade may change while the daemon runs.
type settings struct {
	transport, control string

	mu     sync.RWMutex
	token  string
	system map[string]string
	user   map[string]string
	// updated is the time stamp of the newest configuration that was taken over.
	updated time.Time
}

func newSettings(c envd.Config) *settings {
	// A create may name the sandbox otherwise: where another facade is in front, clients know it by the id there.
	return &settings{
		transport: c.Transport, control: c.Control, token: c.AccessToken, user: c.EnvVars,
		system: map[string]string{
			"E2B_SANDBOX":     "true",
			"E2B_SANDBOX_ID":  cmp.Or(c.EnvVars["E2B_SANDBOX_ID"], c.SandboxID),
			"E2B_TEMPLATE_ID": cmp.Or(c.EnvVars["E2B_TEMPLATE_ID"], c.TemplateID),
		},
	}
}

// environment is a copy of the sandbox-wide variables; the system's win over the user's.
func (s *settings) environment() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make(map[string]string, len(s.user)+len(s.system))
	maps.Copy(all, s.user)
	maps.Copy(all, s.system)
	return all
}

// accessToken is what clients must present; empty: nothing.
func (s *settings) accessToken() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.token
}

// writeState leaves the files by which programs learn that they run in a sandbox. A root file system that
// cannot be written has none: nothing depends on them.
func (d *Daemon) writeState() {
	dir := d.options.StateDir
	if os.MkdirAll(dir, 0o755) != nil {
		return
	}
	for variable, value := range d.settings.system {
		_ = os.WriteFile(filepath.Join(dir, "."+variable), []byte(value), 0o444)
	}
}
