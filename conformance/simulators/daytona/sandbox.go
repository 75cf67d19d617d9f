package daytona

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// The states of a sandbox.
const (
	stateCreating     = "creating"
	stateRestoring    = "restoring"
	stateDestroyed    = "destroyed"
	stateDestroying   = "destroying"
	stateStarted      = "started"
	stateStopped      = "stopped"
	stateStarting     = "starting"
	stateStopping     = "stopping"
	stateError        = "error"
	stateBuildFailed  = "build_failed"
	statePendingBuild = "pending_build"
	stateBuilding     = "building_snapshot"
	statePulling      = "pulling_snapshot"
	stateArchived     = "archived"
	stateArchiving    = "archiving"
	stateResizing     = "resizing"
	stateSnapshotting = "snapshotting"
	stateForking      = "forking"
	statePausing      = "pausing"
	statePaused       = "paused"
	stateResuming     = "resuming"
)

// The classes of sandboxes.
const (
	classContainer = "container"
	classVM        = "linux-vm"
)

// facts are what the API shows of a sandbox.
type facts struct {
	ID                  string            `json:"id"`
	OrganizationID      string            `json:"organizationId"`
	Name                string            `json:"name"`
	Snapshot            string            `json:"snapshot,omitempty"`
	User                string            `json:"user"`
	Env                 map[string]string `json:"env"`
	Labels              map[string]string `json:"labels"`
	Public              bool              `json:"public"`
	NetworkBlockAll     bool              `json:"networkBlockAll"`
	NetworkAllowList    string            `json:"networkAllowList,omitempty"`
	DomainAllowList     string            `json:"domainAllowList,omitempty"`
	OutboundProxyURL    string            `json:"outboundProxyUrl,omitempty"`
	KVM                 bool              `json:"kvm"`
	Target              string            `json:"target"`
	CPU                 int               `json:"cpu"`
	GPU                 int               `json:"gpu"`
	GPUType             string            `json:"gpuType,omitempty"`
	Memory              int               `json:"memory"`
	Disk                int               `json:"disk"`
	State               string            `json:"state"`
	DesiredState        string            `json:"desiredState"`
	ErrorReason         string            `json:"errorReason,omitempty"`
	Recoverable         bool              `json:"recoverable"`
	AutoStopInterval    int               `json:"autoStopInterval"`
	AutoPauseInterval   int               `json:"autoPauseInterval"`
	AutoArchiveInterval int               `json:"autoArchiveInterval"`
	AutoDeleteInterval  int               `json:"autoDeleteInterval"`
	AutoDestroyAt       string            `json:"autoDestroyAt,omitempty"`
	BuildInfo           *buildInfo        `json:"buildInfo,omitempty"`
	CreatedAt           time.Time         `json:"createdAt"`
	UpdatedAt           time.Time         `json:"updatedAt"`
	LastActivityAt      time.Time         `json:"lastActivityAt"`
	SandboxClass        string            `json:"sandboxClass"`
	RunnerID            string            `json:"runnerId"`
	DaemonVersion       string            `json:"daemonVersion"`
	ToolboxProxyURL     string            `json:"toolboxProxyUrl"`
}

type buildInfo struct {
	DockerfileContent string    `json:"dockerfileContent"`
	ContextHashes     []string  `json:"contextHashes,omitempty"`
	CreatedAt         time.Time `json:"createdAt"`
	UpdatedAt         time.Time `json:"updatedAt"`
	SnapshotRef       string    `json:"snapshotRef"`
}

// sandbox is one sandbox. A change of its state holds changing; mu guards the fields.
type sandbox struct {
	mu    sync.Mutex
	facts facts
	// shown is what the API shows instead of the state until the time, when it lies.
	shown      string
	shownUntil time.Time
	changing   bool
	stoppedAt  time.Time
	ttl        int // minutes since the create; 0: none
	gone       bool
	box        *machine.Box
	from       *snapshot // what it is made of
	token      string    // of its previews
	signed     map[string]signature
	sessions   map[string]*session
	ptys       map[string]*terminal
}

// signature is a preview URL that carries its own token.
type signature struct {
	port    uint16
	expires time.Time
}

// view is the sandbox as it is shown to the client of a request.
func (sb *sandbox) view(r *http.Request) facts {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	f := sb.facts
	f.ToolboxProxyURL = "http://" + r.Host + "/toolbox"
	if time.Now().Before(sb.shownUntil) {
		f.State = sb.shown
	}
	return f
}

// state is the true state.
func (sb *sandbox) state() string {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.facts.State
}

func (sb *sandbox) setState(state string) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.enter(state)
}

// enter sets the state; mu is held.
func (sb *sandbox) enter(state string) {
	sb.facts.State, sb.facts.UpdatedAt = state, time.Now().UTC()
	if state == stateStopped || state == statePaused {
		sb.stoppedAt = time.Now()
	}
}

// touch notes activity.
func (sb *sandbox) touch() {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.facts.LastActivityAt = time.Now().UTC()
}

// running returns the box when programs can be started in it.
func (sb *sandbox) running() (*machine.Box, error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.facts.State != stateStarted || sb.box == nil {
		return nil, invalid("bad request: failed to get runner info: Is the Sandbox started?")
	}
	return sb.box, nil
}

// halt ends what runs in the sandbox on behalf of clients; its file system stays.
func (sb *sandbox) halt() {
	sb.mu.Lock()
	sessions, ptys := sb.sessions, sb.ptys
	sb.sessions, sb.ptys = map[string]*session{}, map[string]*terminal{}
	sb.mu.Unlock()
	for _, one := range sessions {
		one.end()
	}
	for _, one := range ptys {
		one.end()
	}
}

// remove destroys the box.
func (sb *sandbox) remove(ctx context.Context) error {
	sb.halt()
	sb.mu.Lock()
	box := sb.box
	sb.box = nil
	sb.mu.Unlock()
	if box == nil {
		return nil
	}
	return box.Destroy(ctx)
}

// find returns a sandbox by its id or name; nil: there is none.
func (s *Simulator) find(idOrName string) *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sb := s.sandboxes[idOrName]; sb != nil {
		return sb
	}
	for _, sb := range s.sandboxes {
		sb.mu.Lock()
		named := sb.facts.Name == idOrName
		sb.mu.Unlock()
		if named {
			return sb
		}
	}
	return nil
}
