// Package config reads the one configuration file. Everything in it has a default, so that no file at all is
// a configuration; secrets come from the environment only.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Config is the whole configuration. The yaml tags are its language; the comments are its reference.
type Config struct {
	// Listen is the address of the one public listener, host:port. Port 0 takes a free one.
	Listen string `yaml:"listen"`
	// Data is the folder that holds everything that must last.
	Data string `yaml:"data"`
	// Domain is below which sandboxes have their host names, with a port if it is not the scheme's own.
	// Empty: localhost and the port of listen.
	Domain   string   `yaml:"domain"`
	TLS      TLS      `yaml:"tls"`
	Operator Operator `yaml:"operator"`
	Limits   Limits   `yaml:"limits"`
	Local    Local    `yaml:"local"`
	// Pools are the places where sandboxes run, in the order in which creates try them where nothing else decides.
	// Empty: this machine alone.
	Pools []Pool `yaml:"pools"`
	// Ranking is how pools that qualify are ordered.
	Ranking Ranking `yaml:"ranking"`
	// Classes are names for sets of requirements (docs/placement.md), for example ci: {cpu: "4", rank: startup}.
	Classes map[string]map[string]string `yaml:"classes"`
	// Require are requirements that the operator adds to creates.
	Require Require `yaml:"require"`
}

// TLS names the files of a certificate for the domain and *.domain. Both or none.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Operator is the listener for the operator alone: metrics and administration.
type Operator struct {
	// Listen is its address; empty: there is none. /isthmus/ on it needs ISTHMUS_ADMIN_TOKEN.
	Listen string `yaml:"listen"`
}

// Limits bound what clients may have.
type Limits struct {
	// MaxSandboxes is the largest number of sandboxes on this machine; 0: no limit.
	MaxSandboxes int `yaml:"max_sandboxes"`
	// TeamConcurrency is the largest number of sandboxes of one team; 0: no limit.
	TeamConcurrency int `yaml:"team_concurrency"`
	// CallsPerSecond bounds the calls of one API key to the control plane; over it: 429. Twice as many are allowed at
	// once. 0: no limit.
	CallsPerSecond int `yaml:"calls_per_second"`
	// Connections bounds the clients' connections; 0: half of the descriptors that this process may have.
	Connections int `yaml:"connections"`
	// LongestLife is how old a sandbox may become, for example 24h.
	LongestLife time.Duration `yaml:"longest_life"`
	// CPU, MemoryMB and DiskMB bound the sizes of all sandboxes of this machine together, in virtual CPUs
	// and MiB; 0: no limit, because sizes are ceilings, not reservations.
	CPU      int `yaml:"cpu"`
	MemoryMB int `yaml:"memory_mb"`
	DiskMB   int `yaml:"disk_mb"`
	// KeepFreeMB is how much of the data folder's disk stays free, in MiB: below it no sandbox is made on this
	// machine, because the disks of those that run grow as they are written to. At least 256.
	KeepFreeMB int `yaml:"keep_free_mb"`
}

// Local configures the sandboxes of this machine.
type Local struct {
	// Isolation is empty for user namespaces, gvisor for a kernel of each sandbox's own, or the name of a weaker tier:
	// process.
	Isolation string `yaml:"isolation"`
	// Runsc is the path of gVisor's program, for isolation gvisor; empty: the one that is found in PATH.
	Runsc string `yaml:"runsc"`
	// ProcessAsRoot allows isolation: process where Isthmus is root, and sandboxes then own the machine.
	ProcessAsRoot bool `yaml:"process_as_root"`
	// AllowSingleID lets an ordinary user without subordinate ids run sandboxes with one user id. It is not
	// served yet, so true is a fault.
	AllowSingleID bool `yaml:"allow_single_id"`
	// Egress is empty for internet access, or none.
	Egress string `yaml:"egress"`
	// AllowPrivate are private ranges that sandboxes may reach, in CIDR form.
	AllowPrivate []string `yaml:"allow_private"`
	// Resolvers answer the sandboxes' name look-ups, address:port; empty: those of this machine.
	Resolvers []string `yaml:"resolvers"`
	// FirstID is the first user id that sandboxes are given when running as root; 0: the adapter's choice.
	FirstID int `yaml:"first_id"`
	// Processes bounds the processes of one sandbox; 0: the adapter's choice.
	Processes int `yaml:"processes"`
	// Envd and Sudo are paths of those programs; empty: the built-in ones, or those beside isthmus.
	Envd string `yaml:"envd"`
	Sudo string `yaml:"sudo"`
	// Warm is how many sandboxes are made ahead and kept ready, by template name; 0: none. It replaces the
	// default as a whole.
	Warm map[string]int `yaml:"warm"`
	// Images maps further template names to images that were imported.
	Images map[string]string `yaml:"images"`
}

// Default is the configuration without a file.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:3000",
		Data:   "./data",
		Limits: Limits{CallsPerSecond: 1000, LongestLife: 24 * time.Hour, KeepFreeMB: 1024},
		Local:  Local{Warm: map[string]int{"base": 2}},
	}
}

// Load reads a file over the defaults. An empty path is the defaults. Every fault is reported at once, as
// Faults; the configuration is then not usable.
func Load(path string) (Config, error) {
	config := Default()
	if path == "" {
		return config, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config, fmt.Errorf("there is no configuration file %s", path)
	}
	if err != nil {
		return config, err
	}
	return Parse(text)
}

// Parse reads a configuration over the defaults.
func Parse(text []byte) (Config, error) {
	config := Default()
	faults, err := decode(text, &config)
	if err != nil {
		return config, err
	}
	// A field that could not be read has its default here, which has no fault of its own.
	faults = append(faults, config.check()...)
	if len(faults) > 0 {
		return config, faults
	}
	return config, nil
}

// Check looks at a configuration that flags have changed.
func (c Config) Check() error {
	if faults := c.check(); len(faults) > 0 {
		return faults
	}
	return nil
}

// Fault is one thing that is wrong.
type Fault struct {
	Path string // of the field, for example limits.longest_life
	Text string // what is wrong and what would be right
}

// Faults are all that is wrong.
type Faults []Fault

// Error lists the faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Path + ": " + fault.Text
	}
	return strings.Join(lines, "\n")
}
