// Package adapters is the contract between the fleet and the places where sandboxes run. A provider knows
// how to make, find, list, remove and reach a box; everything else is an optional power, a small interface
// of its own, found once when the pool starts (PowersOf), and what it can do is data (CapabilitiesOf).
//
// In a box there is either our envd, which adapters/bootstrap brings into boxes that know nothing of it, or,
// with the power Native, one that the provider brought. It is always one of the two.
//
// The life of a box: Resolve turns a template name into a Template; Create makes a box that carries our id,
// the attempt and the deployment as labels, and returns when envd answers inside it; Reach says how to open
// connections to that envd for as long as the box lives; Destroy removes it, twice is fine. After a restart
// of the facade List and Get find what is there. A box never depends on the facade's process being alive.
package adapters

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// Provider makes, finds, lists, removes and reaches boxes. All methods are safe for concurrent use, honour
// the cancelling of ctx, and return only *Error (or a context error).
type Provider interface {
	// Describe returns the facts of this provider. It does no I/O and never changes after the start.
	Describe() Description

	// Resolve finds a template by id, name or alias. Unknown names are KindNotFound, with a message that
	// lists the templates that exist.
	Resolve(ctx context.Context, name string) (Template, error)

	// Create makes the box spec.BoxID and returns when its envd answers. It is never retried blindly: when
	// the outcome is not known it returns KindUnknownOutcome and the caller looks the box up. When it fails
	// in any other way, nothing of the box is left. A second Create of one id is KindExists.
	Create(ctx context.Context, spec Spec) (Box, error)

	// Get returns one box of ours, or KindNotFound.
	Get(ctx context.Context, boxID string) (Box, error)

	// List returns every box that carries the deployment's label, in no order.
	List(ctx context.Context, deployment string) ([]Box, error)

	// Destroy ends the box and removes everything of it. A box that is not there is success. It returns
	// only when nothing is left, or an error that says what is.
	Destroy(ctx context.Context, boxID string) error

	// Reach says how to open connections to envd in the box. It stays valid until the box ends.
	Reach(ctx context.Context, boxID string) (Endpoint, error)

	// Run does the provider's background work (for example carrying the boxes' traffic) until ctx ends, and
	// returns when all of it has ended. Boxes stay alive.
	Run(ctx context.Context) error
}

// Extender is the power to move the box's own deadline, the backstop behind the facade's.
type Extender interface {
	// Extend sets the time at which the box ends by itself, also that of a stocked box. Idempotent.
	Extend(ctx context.Context, boxID string, deadline time.Time) error
}

// Meter is the power to tell what a box uses.
type Meter interface {
	// Measure takes one sample. KindNotFound when the box is gone.
	Measure(ctx context.Context, boxID string) (Sample, error)
}

// Journal is the power to read what envd noted: process starts and ends, warnings.
type Journal interface {
	// Entries returns the noted entries with a number larger than after, oldest first, at most 1,000.
	Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error)
}

// Watcher is the power to say at once that a box ended by itself.
type Watcher interface {
	// Ended returns a channel that is closed when the box has ended, however it ended.
	Ended(boxID string) (<-chan struct{}, error)
}

// Explainer is the power to say why a box ended by itself.
type Explainer interface {
	// Why returns a few words for the record, in the place's own: Evicted, OOMKilled. Empty: not known.
	Why(ctx context.Context, boxID string) string
}

// Stocker is the power to make boxes ahead and to claim one in about a millisecond.
type Stocker interface {
	// Stock makes one box ahead for this template and these resources. Its envd is configured at the claim.
	Stock(ctx context.Context, spec Spec) (Box, error)
	// Claim makes a stocked box the box of spec.BoxID by one conditional step, so that it is claimed once.
	// It fits when template, its version, sizes and network are the same. KindNotFound when none fits: the
	// caller then creates. KindCapacity when there is no room for another box to be used.
	Claim(ctx context.Context, spec Spec) (Box, error)
	// Unstock destroys a stocked box by one conditional step too, so that it never takes one that was claimed.
	// KindNotFound when no stocked box has this id (any more).
	Unstock(ctx context.Context, boxID string) error
}

// Description is what a provider says of itself, resolved once at the start.
type Description struct {
	// Provider is the adapter's name, for example "local".
	Provider string `json:"provider"`
	// Isolation is process, container, gvisor, vm, microvm or unknown.
	Isolation string `json:"isolation"`
	// Tier names the variant in use, for people, for example "user namespace as root".
	Tier string `json:"tier,omitempty"`
	// Weak says that the isolation is below what its name usually means.
	Weak bool `json:"weak,omitempty"`
	// Unenforced names the limits that this place cannot enforce: memory, cpu, pids, disk, and counters,
	// which is what a kernel counts by user (inotify, message queues, pipes). A create that
	// demands one of them is refused.
	Unenforced []string `json:"unenforced,omitempty"`
	// InternetOff says whether the network can really be taken away.
	InternetOff bool `json:"internetOff"`
	// SeenAtOnce says that, once Create has returned in whichever way, Get and List find what it made. Elsewhere
	// that a box is not found proves nothing for a while.
	SeenAtOnce bool `json:"seenAtOnce,omitempty"`
	// Max are the largest sizes of one box.
	Max Resources `json:"max"`
	// Capabilities are further facts, as the adapter states them. CapabilitiesOf resolves all of them.
	Capabilities []Capability `json:"capabilities,omitempty"`
}

// Template is something that boxes are made from.
type Template struct {
	// ID is 20 characters of [a-z0-9] and stays the same for one name on one deployment.
	ID string `json:"id"`
	// Name is the alias, for example "base".
	Name string `json:"name"`
	// Version is another one whenever boxes of this template become other boxes; empty: not known. Boxes that
	// were made ahead serve only their own version.
	Version string `json:"version,omitempty"`
	// Resources are the default sizes.
	Resources Resources `json:"resources"`
	// EnvVars are the template's own environment variables.
	EnvVars map[string]string `json:"envVars,omitempty"`
	// Snapshot is the Ref of the copy that boxes are made of; empty: they are made of the template's image.
	Snapshot string `json:"snapshot,omitempty"`
}

// Resources are ceilings, not reservations.
type Resources struct {
	CPU      int `json:"cpu"`      // whole virtual CPUs, at least 1
	MemoryMB int `json:"memoryMB"` // MiB
	DiskMB   int `json:"diskMB"`   // MiB
}

// GPU is a kind, as FeatureGPU lists it, and how many of it; an empty kind is none.
type GPU struct {
	Kind  string `json:"kind,omitempty"`
	Count int    `json:"count,omitempty"`
}

// MaxVariable is the longest NAME=value of Envd.EnvVars, in bytes.
const MaxVariable = envd.MaxVariable

// LongVariable returns the name of a variable that is longer; empty: there is none.
func LongVariable(vars map[string]string) string { return envd.LongVariable(vars) }

// Spec is what a box is made of. All of it is neutral: no wire type of ours, no vendor's type.
type Spec struct {
	// BoxID is the provider's unique name of the box, 21 characters of [a-z0-9]: the sandbox id for a box
	// that is made on demand.
	BoxID string
	// Attempt is a UUID of this try, Deployment the label of this Isthmus, TeamID the tenant. They are
	// stored with the box.
	Attempt    string
	Deployment string
	TeamID     string
	Template   Template
	Resources  Resources
	// GPU is what the box needs of GPUs; a place that has none refuses it with KindUnsupported.
	GPU GPU
	// Region is one of FeatureRegions where the box is to be; empty: the place chooses.
	Region  string
	Network Network
	// Envd configures the daemon; Envd.Deadline is the backstop, past the facade's own deadline.
	Envd envd.Config
}

// Box is one box as the provider sees it.
type Box struct {
	ID         string
	Attempt    string
	Deployment string
	// SandboxID is the sandbox that the box serves; empty for a stocked box that nobody claimed.
	SandboxID string
	CreatedAt time.Time
	// Alive is false when the box ended by itself and only its remains are left to be destroyed.
	Alive bool
	// Paused is true while the box is stopped and can be resumed; Alive is true then, too.
	Paused bool
}

// Endpoint is how connections to the box's envd are opened: requests go to URL with Header added, over
// connections made by Dial when it is set.
type Endpoint struct {
	URL    *url.URL
	Header http.Header
	Dial   func(ctx context.Context) (net.Conn, error)
	// ByHost says that the other end finds the box by the Host of a request, which must be that of the URL, also over
	// Dial. Otherwise the Host over Dial is the client's.
	ByHost bool
}

// Sample is one measurement of a box.
type Sample struct {
	At        time.Time
	CPUCount  int
	CPUTime   time.Duration // used since the box started, over all CPUs
	MemUsed   int64         // bytes
	MemTotal  int64
	MemCache  int64
	DiskUsed  int64
	DiskTotal int64
}
