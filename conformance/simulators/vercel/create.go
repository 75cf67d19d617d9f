//go:build linux

package vercel

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// newSandbox is the body of create, fork and update. What is nil was not said.
type newSandbox struct {
	ProjectID       string            `json:"projectId"`
	Name            string            `json:"name"`
	Image           *string           `json:"image"`
	Runtime         *string           `json:"runtime"`
	Source          *Source           `json:"source"`
	Ports           *[]int            `json:"ports"`
	Timeout         *int64            `json:"timeout"`
	Resources       *resources        `json:"resources"`
	Persistent      *bool             `json:"persistent"`
	NetworkPolicy   *Policy           `json:"networkPolicy"`
	NetworkID       *string           `json:"networkId"`
	Env             map[string]string `json:"env"`
	Tags            map[string]string `json:"tags"`
	Mounts          map[string]Mount  `json:"mounts"`
	SnapshotExpires *int64            `json:"snapshotExpiration"`
	KeepLast        *KeepLast         `json:"keepLastSnapshots"`
	Region          *string           `json:"region"`
	FailoverRegions []string          `json:"failoverRegions"`
	CurrentSnapshot *string           `json:"currentSnapshotId"`
}

type resources struct {
	VCPUs  int `json:"vcpus"`
	Memory int `json:"memory"`
}

// Source is what a sandbox's files come from.
type Source struct {
	Type       string `json:"type"`
	URL        string `json:"url"`
	Depth      int    `json:"depth"`
	Revision   string `json:"revision"`
	Username   string `json:"username"`
	Password   string `json:"password"`
	SnapshotID string `json:"snapshotId"`
}

// command fetches the source into the working folder; nil: there is nothing to fetch.
func (s Source) command() []string {
	switch s.Type {
	case "git":
		script := `git clone --depth "${1:-1}" "$0" . && { test -z "$2" || { git fetch --depth 1 origin "$2" && git checkout -q FETCH_HEAD; }; }`
		return []string{"/bin/sh", "-c", script, s.URL, fmt.Sprint(max(1, s.Depth)), s.Revision}
	case "tarball":
		return []string{"/bin/sh", "-c", `curl -fsSL "$0" | tar -xz`, s.URL}
	}
	return nil
}

// env gives git the password without showing it in the list of processes.
func (s Source) env() map[string]string {
	if s.Type != "git" || s.Password == "" {
		return nil
	}
	return map[string]string{
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "credential.helper", "GIT_USER": s.Username, "GIT_PASS": s.Password,
		"GIT_CONFIG_VALUE_0": `!f() { echo "username=$GIT_USER"; echo "password=$GIT_PASS"; }; f`,
	}
}

var (
	nameForm     = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}$`)
	runtimeNames = []string{"node22", "node24", "node26", "python3.13"}
)

// create makes a sandbox and boots its first session. It goes on when the caller hangs up.
func (s *Server) create(r *http.Request) (any, error) {
	var body newSandbox
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.ProjectID != s.config.Project {
		return nil, notFound("The project")
	}
	return s.make(body)
}

// make reserves the name and boots.
func (s *Server) make(body newSandbox) (any, error) {
	b := &sandbox{info: Sandbox{
		Name: body.Name, Persistent: true, Region: defaultRegion, VCPUs: defaultVCPUs, Image: defaultImage, CWD: workdir,
		Timeout: defaultTimeout.Milliseconds(), CreatedAt: milliseconds(time.Now()), Status: statusPending,
	}}
	if b.info.Name == "" {
		b.info.Name = strings.ToLower(newID("sandbox-"))
	}
	if !nameForm.MatchString(b.info.Name) {
		return nil, badRequest("The name may have letters, digits, - and _.")
	}
	if err := s.settle(b, body); err != nil {
		return nil, err
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	if err := s.reserve(b); err != nil {
		return nil, err
	}
	from := ""
	if b.source.Type == "snapshot" {
		from = b.source.SnapshotID
	}
	if err := s.boot(b, from); err != nil {
		s.forget(b)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.show(b), nil
}

// reserve takes the name. A taken one is 400, and not 409: the cloud answers so.
func (s *Server) reserve(b *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandboxes[b.info.Name] != nil {
		return badRequest(fmt.Sprintf("A sandbox named %q exists already. Use GET /v2/sandboxes/:name to look it up.", b.info.Name))
	}
	if err := s.attach(b); err != nil {
		return err
	}
	s.sandboxes[b.info.Name] = b
	s.setRoutes(b)
	return nil
}

// forget takes away what was reserved.
func (s *Server) forget(b *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.deleted = true
	s.dropRoutes(b)
	s.detach(b)
	if s.sandboxes[b.info.Name] == b {
		delete(s.sandboxes, b.info.Name)
	}
}

// settle puts what was said over a sandbox, or says what is wrong with it. The sandbox is not in use yet, or mu is held.
func (s *Server) settle(b *sandbox, body newSandbox) error {
	for _, step := range []func(*sandbox, newSandbox) error{s.settleSource, s.settleLimits, s.settlePorts, s.settleRest} {
		if err := step(b, body); err != nil {
			return err
		}
	}
	b.info.UpdatedAt = milliseconds(time.Now())
	return nil
}

func (s *Server) settleSource(b *sandbox, body newSandbox) error {
	if body.Runtime != nil {
		if !slices.Contains(runtimeNames, *body.Runtime) {
			return badRequest("The runtime must be one of " + strings.Join(runtimeNames, ", ") + ".")
		}
		b.info.Runtime, b.info.Image = *body.Runtime, ""
	}
	if body.Image != nil {
		if s.machineImage(*body.Image) == "" {
			return badRequest(fmt.Sprintf("The image %q is not in the Vercel Container Registry.", *body.Image))
		}
		b.info.Image = *body.Image
	}
	if body.Source != nil {
		if !slices.Contains([]string{"git", "tarball", "snapshot"}, body.Source.Type) {
			return badRequest("The type of the source must be git, tarball or snapshot.")
		}
		b.source = *body.Source
	}
	return nil
}

// machineImage is the image of this machine that stands for one of the registry; empty: there is none.
func (s *Server) machineImage(image string) string {
	repository := strings.TrimPrefix(image, "vcr.vercel.com/")
	if at := strings.IndexAny(repository, ":@"); at >= 0 {
		repository = repository[:at]
	}
	if repository == "" || strings.HasPrefix(repository, "vercel/sandbox/") {
		return "base"
	}
	return s.config.Images[repository]
}

func (s *Server) settleLimits(b *sandbox, body newSandbox) error {
	plan := s.config.Plan
	if body.Resources != nil && body.Resources.VCPUs != 0 {
		b.info.VCPUs = body.Resources.VCPUs
	}
	if b.info.VCPUs < 1 || b.info.VCPUs > plan.MaxVCPUs {
		return badRequest(fmt.Sprintf("A sandbox of this plan has 1 to %d vCPUs.", plan.MaxVCPUs))
	}
	b.info.Memory = memoryPerVCPU * b.info.VCPUs
	if body.Resources != nil && body.Resources.Memory != 0 && body.Resources.Memory != b.info.Memory {
		return badRequest(fmt.Sprintf("The memory must be %d MB for each vCPU.", memoryPerVCPU))
	}
	if body.Timeout != nil {
		b.info.Timeout = *body.Timeout
	}
	if b.info.Timeout < minTimeout.Milliseconds() || b.info.Timeout > plan.MaxLife.Milliseconds() {
		return fail(http.StatusBadRequest, "sandbox_timeout_invalid",
			fmt.Sprintf("The timeout must be between %d and %d milliseconds.", minTimeout.Milliseconds(), plan.MaxLife.Milliseconds()))
	}
	return nil
}

func (s *Server) settlePorts(b *sandbox, body newSandbox) error {
	if body.Ports == nil {
		return nil
	}
	if len(*body.Ports) > maxPorts {
		return badRequest(fmt.Sprintf("A sandbox has at most %d ports.", maxPorts))
	}
	for _, port := range *body.Ports {
		if port < 1 || port > 65535 {
			return badRequest(fmt.Sprintf("%d is no port.", port))
		}
	}
	b.ports = slices.Clone(*body.Ports)
	return nil
}

func (s *Server) settleRest(b *sandbox, body newSandbox) error {
	if len(body.Tags) > maxTags {
		return badRequest(fmt.Sprintf("A sandbox has at most %d tags.", maxTags))
	}
	if body.Tags != nil {
		b.info.Tags = body.Tags
	}
	if body.NetworkPolicy != nil {
		if err := body.NetworkPolicy.check(); err != nil {
			return err
		}
		b.policy, b.info.NetworkPolicy = *body.NetworkPolicy, body.NetworkPolicy.answer()
	}
	if body.KeepLast != nil {
		if body.KeepLast.Count < 1 || body.KeepLast.Count > 10 {
			return badRequest("keepLastSnapshots.count must be between 1 and 10.")
		}
		b.info.KeepLast = body.KeepLast
	}
	put(&b.info.Persistent, body.Persistent)
	put(&b.info.NetworkID, body.NetworkID)
	put(&b.info.Region, body.Region)
	if body.SnapshotExpires != nil {
		b.info.SnapshotExpires = body.SnapshotExpires
	}
	if body.FailoverRegions != nil {
		b.info.FailoverRegions = body.FailoverRegions
	}
	if body.Env != nil {
		b.env = body.Env
	}
	if body.Mounts != nil {
		b.info.Mounts = body.Mounts
	}
	return nil
}

// put sets a field that was said.
func put[V any](field *V, said *V) {
	if said != nil {
		*field = *said
	}
}
