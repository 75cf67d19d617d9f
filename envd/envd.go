// Package envd holds what the facade and the daemon inside a sandbox agree on: the start-up configuration,
// the names of the two secret headers, the internal routes and the version that is reported to clients.
//
// The daemon itself is in envd/daemon, its wire contract in envd/process and envd/filesystem, and the way
// to any TCP port of the sandbox in envd/tunnel. Nothing below this folder imports anything of ours from
// outside it, because the daemon is carried into other people's machines and must stay small.
package envd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Version is the envd version that Isthmus reports to clients. SDKs compare it with the versions in which
// features appeared, so it names the behaviour that the daemon implements, not our own release.
const Version = "0.6.13"

// Port is the TCP port that clients address envd by.
const Port = 49983

// The two secret headers. The gateway removes both from what clients send and adds HeaderTransport alone;
// only the facade itself ever sends HeaderControl.
const (
	// HeaderTransport proves that a request came through the facade.
	HeaderTransport = "Isthmus-Transport"
	// HeaderControl opens the internal routes.
	HeaderControl = "Isthmus-Control"
)

// Internal routes. They need HeaderControl, are served on the facade's listener only, and the gateway
// answers 404 for them.
const (
	// RouteInit is upstream's path for (re)configuring a running daemon.
	RouteInit = "/init"
	// RouteInternal is the prefix of all routes of our own.
	RouteInternal = "/isthmus/"
	// RouteConfigure takes PUT with a Config, once, of a daemon that was started without one and waits for it.
	RouteConfigure = "/isthmus/configure"
	// RouteDeadline takes PUT {"deadline": RFC 3339} and moves the daemon's own end of life.
	RouteDeadline = "/isthmus/deadline"
	// RouteJournal answers GET ?after=N with the journal entries whose number is larger than N, as a JSON array.
	RouteJournal = "/isthmus/journal"
	// RouteUsage answers GET with a Usage, as JSON.
	RouteUsage = "/isthmus/usage"
	// RouteReach answers GET ?address=IP:PORT with 204 when the sandbox can open a TCP connection to it, else 504.
	RouteReach = "/isthmus/reach"
	// RouteKeep is for a pause that ends the container: PUT stops all programs, keeps what they changed in the root file
	// system on the volume, and leaves them stopped; DELETE lets them go on. A daemon without a volume answers 404.
	RouteKeep = "/isthmus/keep"
	// RouteTunnel is the prefix of the tunnel: GET /isthmus/tunnel/{port}, a WebSocket that carries one TCP
	// connection to that port of the sandbox.
	RouteTunnel = "/isthmus/tunnel/"
)

// ControlSum is what a daemon that waits for its configuration knows of the control secret by which it will be
// told: SHA-256 in hexadecimal digits. It gives nothing away and may be read by anybody.
func ControlSum(control string) string {
	sum := sha256.Sum256([]byte(control))
	return hex.EncodeToString(sum[:])
}

// Internal reports whether a cleaned URL path belongs to the facade and the operator alone. Paths are those
// of upstream's control routes and our own prefix (protocol facts, envd section 4.1).
func Internal(path string) bool {
	switch path {
	case RouteInit, "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade":
		return true
	}
	return strings.HasPrefix(path+"/", RouteInternal)
}

// Config is what the daemon is told when it starts, as one JSON object over a pipe, or over RouteConfigure by
// whoever has the control secret: never by argument, environment or file, because those can be read inside the
// sandbox.
type Config struct {
	// SandboxID and TemplateID are shown to programs as E2B_SANDBOX_ID and E2B_TEMPLATE_ID.
	SandboxID  string `json:"sandboxID"`
	TemplateID string `json:"templateID"`
	// AccessToken is the clients' token (X-Access-Token). Empty: the daemon is open to every client.
	AccessToken string `json:"accessToken,omitempty"`
	// Transport and Control are the facade's secrets. An empty Transport is accepted in tests only.
	Transport string `json:"transport,omitempty"`
	Control   string `json:"control,omitempty"`
	// DefaultUser runs commands and owns files when a request names no user; empty means "user".
	DefaultUser string `json:"defaultUser,omitempty"`
	// DefaultWorkdir replaces an empty path or cwd; empty means the user's home.
	DefaultWorkdir string `json:"defaultWorkdir,omitempty"`
	// EnvVars are the sandbox-wide variables of every process.
	EnvVars map[string]string `json:"envVars,omitempty"`
	// MemoryBytes is the memory of the sandbox, which the kernel inside may tell wrongly; 0: not known.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// DiskBytes is the disk of the sandbox where its file system tells of another one; 0: it tells rightly.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Deadline is the daemon's own end of life, a backstop behind the facade's. Zero: none.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Usage is what the machine that the daemon sees was used for, where nobody outside can tell. Sizes are in bytes.
type Usage struct {
	At       time.Time `json:"at"`
	CPUCount int       `json:"cpuCount"`
	// CPUTime is what all processors together have worked since the machine began.
	CPUTime   time.Duration `json:"cpuTime"`
	MemUsed   uint64        `json:"memUsed"`
	MemTotal  uint64        `json:"memTotal"`
	MemCache  uint64        `json:"memCache"`
	DiskUsed  uint64        `json:"diskUsed"`
	DiskTotal uint64        `json:"diskTotal"`
	// Kernel is the release of the kernel.
	Kernel string `json:"kernel,omitempty"`
	// BootID is the kernel's own name of its start, and Booted when that was, to the second: machines that have both
	// in common run on one kernel. A machine that was restored from a copy has the boot id of the copied one, but
	// another time.
	BootID string    `json:"bootID,omitempty"`
	Booted time.Time `json:"booted,omitzero"`
	// GVisor says that the kernel shows itself to be gVisor's.
	GVisor bool `json:"gvisor,omitempty"`
}

// JournalEntry is one line of the daemon's bounded journal: a process that started or ended, or a warning.
// It never holds a command's output, and never a secret.
type JournalEntry struct {
	// Number grows by one with each entry, from 1, for the life of the daemon.
	Number uint64 `json:"number"`
	// Time is when it happened, in UTC.
	Time time.Time `json:"time"`
	// Level is debug, info, warn or error.
	Level string `json:"level"`
	// Message is one short sentence.
	Message string `json:"message"`
	// Fields are details, for example pid, cmd, exit_code.
	Fields map[string]string `json:"fields,omitempty"`
}
