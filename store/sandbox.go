package store

import (
	"net/netip"
	"slices"
	"time"
)

// State is where a sandbox is in its life. Clients see running and paused only: Shown says which.
type State string

// The states. Those whose names end in -ing are claims: whoever wrote one is at work on the sandbox, or died at it,
// and then Reconcile goes on.
const (
	StateCreating     State = "creating" // the intent is written, the backend may have been called
	StateRunning      State = "running"
	StatePausing      State = "pausing"
	StatePaused       State = "paused"
	StateResuming     State = "resuming"
	StateSnapshotting State = "snapshotting" // it runs, and is being copied
	StateKilling      State = "killing"
)

// Shown is the state as clients see it: running, paused, or empty for a sandbox that they do not see.
func (s State) Shown() State {
	switch s {
	case StateRunning, StateSnapshotting:
		return StateRunning
	case StatePausing, StatePaused, StateResuming:
		return StatePaused
	}
	return ""
}

// Changing reports whether a transition was claimed that ends in running or paused.
func (s State) Changing() bool {
	return s == StatePausing || s == StateResuming || s == StateSnapshotting
}

// Sandbox is the durable binding of one sandbox to its box. It holds no readable secret: tokens are derived from the
// key in the data folder, and Sealed is encrypted by it.
type Sandbox struct {
	ID     string `json:"id"` // "i" and 20 of [a-z0-9]
	TeamID string `json:"teamID"`
	State  State  `json:"state"`

	Template string `json:"template"` // the template's id
	Alias    string `json:"alias,omitempty"`

	// Pool and BoxID are the home; Attempt is the UUID of the try that made it.
	Pool    string `json:"pool"`
	BoxID   string `json:"boxID"`
	Attempt string `json:"attempt"`

	CreatedAt time.Time `json:"createdAt"` // when the intent was written
	StartedAt time.Time `json:"startedAt"`
	EndAt     time.Time `json:"endAt"`
	// Timeout is the time to live that the create asked for.
	Timeout time.Duration `json:"timeout,omitempty"`
	// CreateKey is the client's idempotency key; empty: none.
	CreateKey string `json:"createKey,omitempty"`
	// ToCheck says that the create required what shows only in the box that was made.
	ToCheck bool `json:"toCheck,omitempty"`

	CPU      int `json:"cpu"`
	MemoryMB int `json:"memoryMB"`
	// GPU is the kind of its GPUs, GPUs how many; Region is where the pool was asked to have it. Empty: none, and the
	// pool chose.
	GPU    string `json:"gpu,omitempty"`
	GPUs   int    `json:"gpus,omitempty"`
	Region string `json:"region,omitempty"`
	DiskMB int    `json:"diskMB"`

	EnvdVersion string            `json:"envdVersion"`
	Secure      bool              `json:"secure"`
	Metadata    map[string]string `json:"metadata,omitempty"` // exactly as the client set it
	Network     Network           `json:"network"`
	// NetworkPending says that the place may not follow Network yet.
	NetworkPending bool `json:"networkPending,omitempty"`

	// AutoPause pauses it at EndAt, where it is killed otherwise; AutoPauseLevel is what is then kept, empty: the
	// most that the place can. AutoResume lets traffic wake it.
	AutoPause      bool   `json:"autoPause,omitempty"`
	AutoPauseLevel string `json:"autoPauseLevel,omitempty"`
	AutoResume     bool   `json:"autoResume,omitempty"`
	// PauseLevel is what the pause that is under way, or that holds, keeps: filesystem or memory. EndAt of a paused
	// sandbox is when it was paused.
	PauseLevel string `json:"pauseLevel,omitempty"`
	// PauseTried is what a pause was to keep that may still come about, because its place did not say what became of
	// it, and PauseTriedAt when that was; empty: there is none.
	PauseTried   string    `json:"pauseTried,omitempty"`
	PauseTriedAt time.Time `json:"pauseTriedAt,omitzero"`
	// PauseDueAt is when a pause at the sandbox's end first came to nothing; zero: none did, or its end was moved since.
	PauseDueAt time.Time `json:"pauseDueAt,omitzero"`
	// ResumeFor is the time to live that the resume under way asked for.
	ResumeFor time.Duration `json:"resumeFor,omitempty"`
	// Copy is the place's word for the copy that the box was made of; empty: it was made of a template.
	Copy string `json:"copy,omitempty"`
	// Sealed holds what a box must be told when it is started again and nobody else may read. Only where a place can
	// pause or copy boxes.
	Sealed []byte `json:"sealed,omitempty"`

	// Affinity and Spread are the names by which later sandboxes of the team go to the same pool, or to others.
	Affinity string `json:"affinity,omitempty"`
	Spread   string `json:"spread,omitempty"`
}

// Network is what the client asked of the network, kept as given. Pointers are nil where the client said
// nothing.
type Network struct {
	AllowInternetAccess *bool    `json:"allowInternetAccess,omitempty"`
	AllowPublicTraffic  *bool    `json:"allowPublicTraffic,omitempty"`
	MaskRequestHost     string   `json:"maskRequestHost,omitempty"`
	AllowOut            []string `json:"allowOut,omitempty"`
	DenyOut             []string `json:"denyOut,omitempty"`
	// RuleHosts are the hosts for which headers are added to requests. The headers are secrets.
	RuleHosts []string `json:"ruleHosts,omitempty"`
}

// AllTraffic stands for every address in network rules.
const AllTraffic = "0.0.0.0/0"

// Internet reports whether the sandbox may reach the internet beyond AllowOut: denied by allow_internet_access false
// or by denyOut 0.0.0.0/0 (control plane facts, 3.8).
func (n Network) Internet() bool {
	return (n.AllowInternetAccess == nil || *n.AllowInternetAccess) && !slices.Contains(n.DenyOut, AllTraffic)
}

// IsAddress reports whether an entry of a network list is an address or a CIDR. What is not is a name, or a pattern
// such as *.example.com.
func IsAddress(entry string) bool {
	if _, err := netip.ParsePrefix(entry); err == nil {
		return true
	}
	_, err := netip.ParseAddr(entry)
	return err == nil
}

// PublicTraffic reports whether ports other than envd's are open without the traffic token; the default.
func (n Network) PublicTraffic() bool { return n.AllowPublicTraffic == nil || *n.AllowPublicTraffic }

// SandboxQuery selects and pages sandboxes of one team.
type SandboxQuery struct {
	TeamID string
	// States to include; empty: running and paused.
	States []State
	// Metadata pairs that must all match exactly.
	Metadata map[string]string
	// Template is a template id; empty: any.
	Template string
	// StartedAfter is an inclusive lower bound; zero: none.
	StartedAfter time.Time
	// Ascending orders by start time upwards; the default is newest first. Equal times order by id.
	Ascending bool
	// Limit is the page size, 1 to 100; 0: no limit.
	Limit int
	// After is the last sandbox of the page before; nil: from the start.
	After *SandboxCursor
}

// SandboxCursor is a place in an ordered list of sandboxes.
type SandboxCursor struct {
	StartedAt time.Time
	ID        string
}

// SandboxPage is one page of a list.
type SandboxPage struct {
	Sandboxes []Sandbox
	// Next is nil at the end.
	Next *SandboxCursor
	// Running counts the running sandboxes that match, over all pages.
	Running int
}
