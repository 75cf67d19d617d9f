package daytona

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// snapshot is what sandboxes are made of. copy is nil for those that are an image.
type snapshot struct {
	ID              string     `json:"id"`
	OrganizationID  string     `json:"organizationId,omitempty"`
	General         bool       `json:"general"`
	Name            string     `json:"name"`
	ImageName       string     `json:"imageName,omitempty"`
	State           string     `json:"state"`
	Size            *float64   `json:"size"`
	Entrypoint      []string   `json:"entrypoint"`
	CPU             int        `json:"cpu"`
	GPU             int        `json:"gpu"`
	Memory          int        `json:"mem"`
	Disk            int        `json:"disk"`
	ErrorReason     *string    `json:"errorReason"`
	CreatedAt       time.Time  `json:"createdAt"`
	UpdatedAt       time.Time  `json:"updatedAt"`
	LastUsedAt      *time.Time `json:"lastUsedAt"`
	RegionIDs       []string   `json:"regionIds"`
	SourceSandboxID *string    `json:"sourceSandboxId"`
	SandboxClass    string     `json:"sandboxClass"`

	copy *machine.Snapshot
}

// generalSnapshots are those that every organization has.
func generalSnapshots() []*snapshot {
	now := time.Now().UTC()
	made := func(name, image, class string, cpu, memory, disk, gpu int) *snapshot {
		return &snapshot{ID: uuid.NewString(), General: true, Name: name, ImageName: image, State: "active", CPU: cpu, Memory: memory, Disk: disk,
			GPU: gpu, CreatedAt: now, UpdatedAt: now, RegionIDs: []string{"us"}, SandboxClass: class, Entrypoint: []string{"sleep", "infinity"}}
	}
	return []*snapshot{
		made("daytona-small", "daytonaio/base:0.8.0", classContainer, 1, 1, 3, 0),
		made("daytona-medium", "daytonaio/base:0.8.0", classContainer, 2, 4, 8, 0),
		made("daytona-large", "daytonaio/base:0.8.0", classContainer, 4, 8, 10, 0),
		made("daytona-vm-small", "daytonaio/base:0.8.0", classVM, 1, 1, 3, 0),
		made("daytona-gpu", "daytonaio/base:0.8.0", classContainer, 4, 8, 10, 1),
	}
}

// remove forgets what the snapshot keeps.
func (p *snapshot) remove() error {
	if p.copy == nil {
		return nil
	}
	return p.copy.Delete()
}

func (s *Simulator) snapshotNamed(idOrName string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.snapshots {
		if one.ID == idOrName || one.Name == idOrName {
			found := *one
			return &found
		}
	}
	return nil
}

func (s *Simulator) getSnapshot(r *http.Request) (reply, error) {
	one := s.snapshotNamed(r.PathValue("id"))
	if one == nil {
		return reply{}, notFound("Snapshot with ID or name " + r.PathValue("id") + " not found")
	}
	return ok(one)
}

func (s *Simulator) listSnapshots(r *http.Request) (reply, error) {
	page, limit := number(r, "page", 1), number(r, "limit", defaultPage)
	s.mu.Lock()
	var all []snapshot
	for _, one := range s.snapshots {
		all = append(all, *one)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b snapshot) int { return strings.Compare(a.ID, b.ID) })
	total := len(all)
	from := min((page-1)*limit, total)
	items := all[from:min(from+limit, total)]
	return ok(map[string]any{"items": items, "total": total, "page": page, "totalPages": (total + limit - 1) / limit})
}

// number reads a positive number of the query.
func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// createSnapshot makes one of an image.
func (s *Simulator) createSnapshot(r *http.Request) (reply, error) {
	var body struct {
		Name, ImageName  string
		BuildInfo        *buildInfo
		CPU, GPU, Memory int
		Disk             int
		SandboxClass     string
		Entrypoint       []string
	}
	if err := read(r, &body); err != nil {
		return reply{}, err
	}
	if body.BuildInfo != nil {
		body.ImageName = imageOf(body.BuildInfo.DockerfileContent)
	}
	if body.Name == "" || body.ImageName == "" {
		return reply{}, invalid("name and imageName are needed")
	}
	class := body.SandboxClass
	if class == "" {
		class = classContainer
	}
	now := time.Now().UTC()
	one := &snapshot{
		ID: uuid.NewString(), OrganizationID: organization, Name: body.Name, ImageName: body.ImageName, State: "pending", Entrypoint: body.Entrypoint,
		CPU: or(body.CPU, 1), GPU: body.GPU, Memory: or(body.Memory, 1), Disk: or(body.Disk, 3), CreatedAt: now, UpdatedAt: now,
		RegionIDs: []string{"us"}, SandboxClass: class,
	}
	if err := s.addSnapshot(one); err != nil {
		return reply{}, err
	}
	shown := *one
	s.work.Go(func() {
		pause(s.ctx, s.config.Step)
		err := s.pullable(one.ImageName)
		s.settle(one, nil, err)
	})
	return ok(shown)
}

// addSnapshot adds a row when its name is free.
func (s *Simulator) addSnapshot(one *snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.snapshots {
		if other.Name == one.Name {
			return conflict("Snapshot with name \"" + one.Name + "\" already exists for this organization")
		}
	}
	s.snapshots[one.ID] = one
	return nil
}

// settle ends the making of a snapshot.
func (s *Simulator) settle(one *snapshot, copied *machine.Snapshot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const gibibyte = 1 << 30
	size := 0.1
	if copied != nil {
		size = float64(copied.SizeBytes) / gibibyte
	}
	one.State, one.copy, one.Size, one.UpdatedAt = "active", copied, &size, time.Now().UTC()
	if err != nil {
		reason := err.Error()
		one.State, one.ErrorReason = "error", &reason
	}
}

func (s *Simulator) deleteSnapshot(r *http.Request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.snapshots[r.PathValue("id")]
	if one == nil {
		return reply{}, notFound("Snapshot with ID " + r.PathValue("id") + " not found")
	}
	if one.General {
		return reply{}, &failure{Status: http.StatusForbidden, Message: "You cannot delete a general snapshot"}
	}
	for _, sb := range s.sandboxes {
		if sb.from.ID == one.ID && sb.from.copy != nil {
			one.State = "removing" // what is made of it stays until the last of them has gone
		}
	}
	if err := one.remove(); err != nil {
		return reply{}, err
	}
	delete(s.snapshots, one.ID)
	return reply{status: http.StatusOK}, nil
}

func (s *Simulator) activateSnapshot(r *http.Request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.snapshots[r.PathValue("id")]
	if one == nil {
		return reply{}, notFound("Snapshot with ID " + r.PathValue("id") + " not found")
	}
	if one.State == "active" {
		return reply{}, invalid("Snapshot is already active")
	}
	one.State = "active"
	return ok(*one)
}

// snapshotOf copies a sandbox: a container's files, of a virtual machine the memory too when it runs.
func (s *Simulator) snapshotOf(r *http.Request, sb *sandbox) (reply, error) {
	var body struct {
		Name          string `json:"name"`
		IncludeMemory bool   `json:"includeMemory"`
	}
	if err := read(r, &body); err != nil {
		return reply{}, err
	}
	f := sb.view(r)
	switch {
	case body.Name == "":
		return reply{}, invalid("name should not be empty")
	case body.IncludeMemory:
		return reply{}, unsupported("Memory snapshots are not supported for sandbox class " + f.SandboxClass)
	case f.SandboxClass == classVM && sb.state() != stateStopped:
		return reply{}, invalid("Sandbox must be stopped")
	}
	now := time.Now().UTC()
	one := &snapshot{
		ID: uuid.NewString(), OrganizationID: organization, Name: body.Name, ImageName: sb.from.ImageName, State: "snapshotting", CPU: f.CPU, GPU: f.GPU,
		Memory: f.Memory, Disk: f.Disk, CreatedAt: now, UpdatedAt: now, RegionIDs: []string{"us"}, SourceSandboxID: &f.ID, SandboxClass: f.SandboxClass,
	}
	was := sb.state()
	if err := s.begin(r, sb, was, stateSnapshotting, stateStarted, stateStopped); err != nil {
		return reply{}, err
	}
	if err := s.addSnapshot(one); err != nil {
		s.change(sb, func(context.Context) { sb.setState(was) })
		return reply{}, err
	}
	s.change(sb, func(ctx context.Context) {
		pause(ctx, s.config.Step)
		copied, err := sb.box.Snapshot(ctx)
		s.settle(one, copied, err)
		sb.setState(was)
	})
	return ok(sb.view(r))
}

// fork makes a second sandbox with the files of the first; of virtual machines only.
func (s *Simulator) fork(r *http.Request, sb *sandbox) (reply, error) {
	if sb.facts.SandboxClass != classVM {
		return reply{}, unsupported("Fork is not supported for sandbox class " + sb.facts.SandboxClass)
	}
	return reply{}, unsupported("The simulator does not fork the memory of a virtual machine")
}
