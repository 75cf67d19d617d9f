package daytona

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// organization is the only one.
const organization = "5c1a7b7e-0000-4000-8000-000000000001"

// newSandbox is the body of a create.
type newSandbox struct {
	Name                string            `json:"name"`
	Snapshot            string            `json:"snapshot"`
	User                string            `json:"user"`
	Env                 map[string]string `json:"env"`
	Labels              map[string]string `json:"labels"`
	Public              bool              `json:"public"`
	NetworkBlockAll     bool              `json:"networkBlockAll"`
	NetworkAllowList    string            `json:"networkAllowList"`
	DomainAllowList     string            `json:"domainAllowList"`
	OutboundProxyURL    string            `json:"outboundProxyUrl"`
	Target              string            `json:"target"`
	CPU                 int               `json:"cpu"`
	GPU                 int               `json:"gpu"`
	GPUType             []string          `json:"gpuType"`
	Memory              int               `json:"memory"`
	Disk                int               `json:"disk"`
	AutoStopInterval    *int              `json:"autoStopInterval"`
	AutoPauseInterval   *int              `json:"autoPauseInterval"`
	AutoArchiveInterval *int              `json:"autoArchiveInterval"`
	AutoDeleteInterval  *int              `json:"autoDeleteInterval"`
	TTLMinutes          int               `json:"ttlMinutes"`
	BuildInfo           *buildInfo        `json:"buildInfo"`
}

// The defaults of the cloud.
const (
	defaultSnapshot    = "daytona-small"
	defaultAutoStop    = 15
	defaultAutoArchive = 7 * 24 * 60
	daemonVersion      = "0.190.0"
)

// create makes a sandbox: the row at once, the box in the background.
func (s *Simulator) create(r *http.Request) (reply, error) {
	var n newSandbox
	if err := read(r, &n); err != nil {
		return reply{}, err
	}
	from, err := s.source(&n)
	if err != nil {
		return reply{}, err
	}
	sb := s.row(n, from)
	if err := s.insert(sb); err != nil {
		return reply{}, err
	}
	struck := faultOf(r.Context())
	if struck.is(FaultLying) {
		sb.shown, sb.shownUntil = stateStarted, time.Now().Add(struck.lasting())
	}
	s.change(sb, func(ctx context.Context) { s.make(ctx, sb, n, struck) })
	return ok(sb.view(r))
}

// source finds what the sandbox is made of and takes its sizes where the request has none.
func (s *Simulator) source(n *newSandbox) (*snapshot, error) {
	if n.BuildInfo != nil {
		from := &snapshot{ImageName: imageOf(n.BuildInfo.DockerfileContent), CPU: 1, Memory: 1, Disk: 3, SandboxClass: classContainer}
		n.CPU, n.Memory, n.Disk = or(n.CPU, from.CPU), or(n.Memory, from.Memory), or(n.Disk, from.Disk)
		return from, s.config.Limits.check(n)
	}
	if n.Snapshot == "" {
		n.Snapshot = defaultSnapshot
	}
	from := s.snapshotNamed(n.Snapshot)
	if from == nil {
		return nil, invalid("Snapshot " + n.Snapshot + " not found. Did you add it through the Daytona Dashboard?")
	}
	if from.State != "active" {
		return nil, invalid("Snapshot " + n.Snapshot + " is " + from.State)
	}
	if n.CPU != 0 || n.Memory != 0 || n.Disk != 0 || n.GPU != 0 {
		return nil, invalid("Cannot specify Sandbox resources when using a snapshot")
	}
	n.CPU, n.Memory, n.Disk, n.GPU = from.CPU, from.Memory, from.Disk, from.GPU
	n.Snapshot = from.Name
	if n.GPU > 0 && (n.AutoDeleteInterval == nil || *n.AutoDeleteInterval != 0) {
		return nil, invalid("GPU sandboxes must be ephemeral: set autoDeleteInterval to 0")
	}
	return from, s.config.Limits.check(n)
}

// check holds one sandbox to the limits of a sandbox.
func (l Limits) check(n *newSandbox) error {
	for _, one := range []struct {
		what       string
		want, most int
	}{{"CPU", n.CPU, l.SandboxCPU}, {"Memory", n.Memory, l.SandboxMemory}, {"Disk", n.Disk, l.SandboxDisk}} {
		if one.want > one.most {
			return invalid(fmt.Sprintf("%s request %d exceeds maximum allowed per sandbox (%d).", one.what, one.want, one.most))
		}
	}
	return nil
}

func (s *Simulator) row(n newSandbox, from *snapshot) *sandbox {
	id, now := uuid.NewString(), time.Now().UTC()
	f := facts{
		ID: id, OrganizationID: organization, Name: n.Name, Snapshot: n.Snapshot, User: n.User, Env: n.Env, Labels: n.Labels,
		Public: n.Public, NetworkBlockAll: n.NetworkBlockAll, NetworkAllowList: n.NetworkAllowList, DomainAllowList: n.DomainAllowList,
		OutboundProxyURL: n.OutboundProxyURL, Target: n.Target, CPU: n.CPU, GPU: n.GPU, Memory: n.Memory, Disk: n.Disk,
		State: stateCreating, DesiredState: stateStarted, AutoStopInterval: value(n.AutoStopInterval, defaultAutoStop),
		AutoPauseInterval: value(n.AutoPauseInterval, 0), AutoArchiveInterval: value(n.AutoArchiveInterval, defaultAutoArchive),
		AutoDeleteInterval: value(n.AutoDeleteInterval, -1), BuildInfo: n.BuildInfo, CreatedAt: now, UpdatedAt: now, LastActivityAt: now,
		SandboxClass: from.SandboxClass, RunnerID: "runner-1", DaemonVersion: daemonVersion,
	}
	if f.Name == "" {
		f.Name = id
	}
	if f.User == "" {
		f.User = "daytona"
	}
	if f.Target == "" {
		f.Target = "us"
	}
	if f.Env == nil {
		f.Env = map[string]string{}
	}
	if f.Labels == nil {
		f.Labels = map[string]string{}
	}
	if f.SandboxClass == "" {
		f.SandboxClass = classContainer
	}
	sb := &sandbox{facts: f, from: from, token: strings.ToLower(rand.Text()), signed: map[string]signature{}, sessions: map[string]*session{}, ptys: map[string]*terminal{}}
	sb.setTTL(n.TTLMinutes, s.config.Minute)
	return sb
}

// insert adds a row when its name is free and the organization has room for it.
func (s *Simulator) insert(sb *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cpu, memory, disk int
	for _, other := range s.sandboxes {
		other.mu.Lock()
		f := other.facts
		other.mu.Unlock()
		if f.Name == sb.facts.Name {
			return conflict("Sandbox with name " + f.Name + " already exists")
		}
		switch f.State {
		case stateError, stateBuildFailed, stateArchived:
			continue
		}
		disk += f.Disk
		if f.State != stateStopped && f.State != statePaused {
			cpu, memory = cpu+f.CPU, memory+f.Memory
		}
	}
	l := s.config.Limits
	for _, one := range []struct {
		what       string
		want, most int
		unit       string
	}{{"CPU", cpu + sb.facts.CPU, l.CPU, ""}, {"memory", memory + sb.facts.Memory, l.Memory, "GiB"}, {"disk", disk + sb.facts.Disk, l.Disk, "GiB"}} {
		if one.want > one.most {
			return invalid(fmt.Sprintf("Total %s limit exceeded. Maximum allowed: %d%s.", one.what, one.most, one.unit))
		}
	}
	s.sandboxes[sb.facts.ID] = sb
	return nil
}

// make brings the box up, state by state.
func (s *Simulator) make(ctx context.Context, sb *sandbox, n newSandbox, struck *Fault) {
	switch {
	case struck.is(FaultRunner):
		sb.fail(stateError, "No available runners")
		return
	case struck.is(FaultCorrupt):
		sb.fail(stateError, "failed to create container: device or resource busy")
		return
	case struck.is(FaultImage):
		sb.fail(stateBuildFailed, "failed to pull image: manifest unknown")
		return
	}
	if n.BuildInfo != nil {
		if err := s.build(ctx, sb, n.BuildInfo); err != nil {
			sb.fail(stateBuildFailed, err.Error())
			return
		}
	}
	s.pass(ctx, sb, stateCreating)
	box, err := s.config.Cloud.Create(ctx, s.boxSpec(sb))
	if err != nil {
		sb.fail(stateError, err.Error())
		return
	}
	sb.mu.Lock()
	sb.box = box
	sb.mu.Unlock()
	if err := prepare(ctx, box, sb.facts.User); err != nil {
		sb.fail(stateError, err.Error())
		return
	}
	sb.setState(stateStarted)
}

// boxSpec is the machine that a sandbox is. Of processors it has no more than there are here: the cloud is larger.
func (s *Simulator) boxSpec(sb *sandbox) machine.Spec {
	const mib = 1024
	f := sb.facts
	spec := machine.Spec{
		Name: f.ID, CPU: min(f.CPU, runtime.NumCPU()), MemoryMB: f.Memory * mib, DiskMB: f.Disk * mib, Env: f.Env,
		Network: networkOf(f), Image: s.fileSystem(sb.from.ImageName),
	}
	if sb.from.copy != nil {
		spec.From = sb.from.copy
	}
	return spec
}

// fileSystem is the image of ours that an image of the world is made of.
func (s *Simulator) fileSystem(image string) string {
	name, _, _ := strings.Cut(path.Base(image), ":")
	name, _, _ = strings.Cut(name, "@")
	if ours := s.config.Images[name]; ours != "" {
		return ours
	}
	return s.config.Images["base"]
}

// fail ends a create or another change. The row stays, and holds the name.
func (sb *sandbox) fail(state, reason string) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.facts.ErrorReason = reason
	sb.enter(state)
}

func or(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

func value(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}
