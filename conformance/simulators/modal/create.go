//go:build linux

package modal

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// longestLife is the most that timeout_secs may be.
const longestLife = 24 * 60 * 60

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// asked is a create of either version.
type asked struct {
	app        string
	definition *pb.Sandbox
	tags       []*pb.SandboxTag
	sources    []*pb.SecretSource
	first      bool
}

// SandboxCreateV2 makes a sandbox and answers when it is placed.
func (c *control) SandboxCreateV2(ctx context.Context, r *pb.SandboxCreateV2Request) (*pb.SandboxCreateV2Response, error) {
	d := r.GetDefinition()
	switch {
	case wantsGPU(d):
		return nil, status.Error(codes.InvalidArgument, "GPUs are not supported by this version of sandboxes")
	case d.GetPtyInfo().GetEnabled():
		return nil, status.Error(codes.InvalidArgument, "a PTY of the main process is not supported by this version of sandboxes")
	}
	sb, err := c.make(ctx, asked{app: r.GetAppId(), definition: d, tags: r.GetTags(), sources: r.GetSecretSources()})
	if err != nil {
		return nil, err
	}
	select {
	case <-sb.placed:
	case <-ctx.Done(): // the sandbox is made all the same
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if sb.over() {
		return nil, status.Errorf(codes.Internal, "the sandbox could not be started: %s", sb.outcome().GetException())
	}
	return pb.SandboxCreateV2Response_builder{
		SandboxId: sb.id, TaskId: sb.task, Tunnels: sb.tunnelData(false), Metadata: sb.metadata(), CommandRouterAccess: pb.CommandRouterAccess_builder{
			Jwt: c.token(sb.task), Url: c.routerURL(ctx),
		}.Build(),
	}.Build(), nil
}

// SandboxCreate makes a sandbox of the first version. It answers before it is placed.
func (c *control) SandboxCreate(ctx context.Context, r *pb.SandboxCreateRequest) (*pb.SandboxCreateResponse, error) {
	sb, err := c.make(ctx, asked{app: r.GetAppId(), definition: r.GetDefinition(), tags: r.GetTags(), first: true})
	if err != nil {
		return nil, err
	}
	return pb.SandboxCreateResponse_builder{SandboxId: sb.id}.Build(), nil
}

// make looks whether the sandbox may be, and begins to place it.
func (s *Server) make(ctx context.Context, a asked) (*sandbox, error) {
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err := s.check(a.definition); err != nil {
		return nil, err
	}
	own := rules{a.definition.GetNetworkAccess(), a.definition.GetExperimentalOutboundPolicy()}
	if _, err := own.network(); err != nil {
		return nil, err
	}
	env, err := s.environment(a.definition.GetSecretIds(), a.sources, a.definition.GetEnvironmentVariables().GetContents())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := s.admits(a)
	if err != nil {
		return nil, err
	}
	id := "sb-" + random(base32, lengthU)
	if a.first {
		id = "sb-" + random(base62, lengthV)
	}
	sb := &sandbox{
		id: id, task: newID("ta"), app: a.app, first: a.first, definition: a.definition, env: env, created: time.Now(),
		placed: make(chan struct{}), finished: make(chan struct{}), stop: make(chan *pb.GenericResult, 1),
		name: a.definition.GetName(), tags: a.tags, execs: map[string]*execution{}, rules: own, snapshots: map[string]string{},
	}
	s.sandboxes[sb.id], s.tasks[sb.task] = sb, sb
	s.work.Go(func() { s.place(sb, from) })
	return sb, nil
}

// check refuses what can never be.
func (s *Server) check(d *pb.Sandbox) error {
	invalid := func(format string, args ...any) error { return status.Errorf(codes.InvalidArgument, format, args...) }
	access := d.GetNetworkAccess()
	switch {
	case d.GetTimeoutSecs() < 1 || d.GetTimeoutSecs() > longestLife:
		return invalid("timeout must be between 1 and %d seconds", longestLife)
	case d.HasIdleTimeoutSecs() && d.GetIdleTimeoutSecs() < 1:
		return invalid("idle_timeout must be positive")
	case d.GetName() != "" && !validName.MatchString(d.GetName()):
		return invalid("Invalid Sandbox name: '%s'", d.GetName())
	case argumentBytes(d.GetEntrypointArgs()) > longestArguments:
		return invalid("the arguments are longer than %d bytes", longestArguments)
	case access.GetNetworkAccessType() == pb.NetworkAccess_BLOCKED && len(d.GetOpenPorts().GetPorts()) > 0:
		return invalid("Cannot specify open ports when the network is blocked")
	case access.GetNetworkAccessType() != pb.NetworkAccess_ALLOWLIST && len(access.GetAllowedCidrs())+len(access.GetAllowedDomains()) > 0:
		return invalid("an allowlist needs the type ALLOWLIST")
	case wantsGPU(d) && !slices.ContainsFunc(s.config.GPUs, func(kind string) bool { return strings.EqualFold(kind, d.GetResources().GetGpuConfig().GetGpuType()) }):
		return invalid("invalid GPU type: '%s'", d.GetResources().GetGpuConfig().GetGpuType())
	}
	return checkAccess(access)
}

func wantsGPU(d *pb.Sandbox) bool {
	return d.GetResources().GetGpuConfig().GetCount() > 0 || d.GetResources().GetGpuConfig().GetGpuType() != ""
}

// admits refuses what cannot be now, and finds the image. The caller holds the lock.
func (s *Server) admits(a asked) (*image, error) {
	if !s.hasApp(a.app) {
		return nil, status.Errorf(codes.NotFound, "App '%s' not found", a.app)
	}
	if name := a.definition.GetName(); name != "" && s.named(a.app, name, false) != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Sandbox with name '%s' already exists", name)
	}
	if s.running() >= s.config.MaxSandboxes {
		return nil, status.Errorf(codes.ResourceExhausted, "the workspace has reached its limit of %d running tasks", s.config.MaxSandboxes)
	}
	return s.usable(a.definition.GetImageId())
}

func (s *Server) hasApp(id string) bool {
	for _, app := range s.apps {
		if app == id {
			return true
		}
	}
	return false
}
