//go:build linux

package modal

import (
	"cmp"
	"context"
	"slices"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// named is the newest sandbox of a name; an empty app is any. The caller holds the lock.
func (s *Server) named(app, name string, alsoEnded bool) *sandbox {
	var found *sandbox
	for _, sb := range s.sandboxes {
		sb.mu.Lock()
		fits := sb.name == name && (app == "" || sb.app == app) && (alsoEnded || sb.result == nil)
		sb.mu.Unlock()
		if fits && (found == nil || sb.created.After(found.created)) {
			found = sb
		}
	}
	return found
}

// SandboxGetFromNameV2 finds a sandbox of the second version by its name.
func (c *control) SandboxGetFromNameV2(_ context.Context, r *pb.SandboxGetFromNameRequest) (*pb.SandboxGetFromNameResponse, error) {
	return c.fromName(r, false)
}

// SandboxGetFromName finds one of the first version.
func (c *control) SandboxGetFromName(_ context.Context, r *pb.SandboxGetFromNameRequest) (*pb.SandboxGetFromNameResponse, error) {
	return c.fromName(r, true)
}

func (c *control) fromName(r *pb.SandboxGetFromNameRequest, first bool) (*pb.SandboxGetFromNameResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := status.Errorf(codes.NotFound, "Sandbox with name '%s' not found in App '%s'", r.GetSandboxName(), r.GetAppName())
	app, there := c.apps[r.GetAppName()]
	if !there {
		return nil, missing
	}
	sb := c.named(app, r.GetSandboxName(), r.GetIncludeTerminated())
	if sb == nil || sb.first != first {
		return nil, missing
	}
	return pb.SandboxGetFromNameResponse_builder{SandboxId: sb.id, Metadata: sb.metadata()}.Build(), nil
}

// SandboxSetName gives a sandbox without a name one.
func (c *control) SandboxSetName(_ context.Context, r *pb.SandboxSetNameRequest) (*pb.SandboxSetNameResponse, error) {
	sb, err := c.find(r.GetSandboxId(), false)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named(sb.app, r.GetName(), false) != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Sandbox with name '%s' already exists", r.GetName())
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.name != "" || sb.result != nil {
		return nil, status.Error(codes.FailedPrecondition, "the Sandbox has a name already, or has ended")
	}
	sb.name = r.GetName()
	return pb.SandboxSetNameResponse_builder{}.Build(), nil
}

// page is how many sandboxes one list holds.
const page = 50

// SandboxListV2 lists sandboxes of both versions, the newest first.
func (c *control) SandboxListV2(_ context.Context, r *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	return c.list(r, false), nil
}

// SandboxList lists those of the first version.
func (c *control) SandboxList(_ context.Context, r *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	return c.list(r, true), nil
}

func (c *control) list(r *pb.SandboxListRequest, firstOnly bool) *pb.SandboxListResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*pb.SandboxInfo
	for _, sb := range c.sandboxes {
		before := r.GetBeforeTimestamp() == 0 || seconds(sb.created) < r.GetBeforeTimestamp()
		if (sb.first || !firstOnly) && before && (r.GetAppId() == "" || r.GetAppId() == sb.app) && sb.carries(r.GetTags()) && (r.GetIncludeFinished() || !sb.over()) {
			found = append(found, sb.info())
		}
	}
	slices.SortFunc(found, func(a, b *pb.SandboxInfo) int { return cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()) })
	return pb.SandboxListResponse_builder{Sandboxes: found[:min(len(found), page)]}.Build()
}

// carries reports whether the sandbox has all these tags.
func (sb *sandbox) carries(tags []*pb.SandboxTag) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	for _, want := range tags {
		if !slices.ContainsFunc(sb.tags, func(t *pb.SandboxTag) bool {
			return t.GetTagName() == want.GetTagName() && t.GetTagValue() == want.GetTagValue()
		}) {
			return false
		}
	}
	return true
}

// info is what a list tells of a sandbox.
func (sb *sandbox) info() *pb.SandboxInfo {
	tunnels := sb.tunnelData(true)
	metadata := sb.metadata()
	sb.mu.Lock()
	defer sb.mu.Unlock()
	task := pb.TaskInfo_builder{Id: sb.task, EnqueuedAt: seconds(sb.created), StartedAt: seconds(sb.started), FinishedAt: seconds(sb.ended), Result: sb.result, SandboxId: sb.id}
	if gpu := sb.definition.GetResources().GetGpuConfig(); gpu != nil {
		task.GpuType = gpu.GetGpuType()
	}
	return pb.SandboxInfo_builder{
		Id: sb.id, CreatedAt: seconds(sb.created), TaskInfo: task.Build(), AppId: sb.app, Tags: sb.tags, Name: sb.name, ImageId: sb.definition.GetImageId(),
		TimeoutSecs: sb.definition.GetTimeoutSecs(), Regions: sb.definition.GetSchedulerPlacement().GetRegions(), Tunnels: tunnels, Metadata: metadata,
	}.Build()
}

func (sb *sandbox) metadata() *pb.SandboxHandleMetadata {
	return pb.SandboxHandleMetadata_builder{Result: sb.outcome(), AppId: sb.app}.Build()
}

// SandboxTagsGetV2 returns the tags of a sandbox.
func (c *control) SandboxTagsGetV2(_ context.Context, r *pb.SandboxTagsGetRequest) (*pb.SandboxTagsGetResponse, error) {
	return c.tagsOf(r, false)
}

// SandboxTagsGet returns those of one of the first version.
func (c *control) SandboxTagsGet(_ context.Context, r *pb.SandboxTagsGetRequest) (*pb.SandboxTagsGetResponse, error) {
	return c.tagsOf(r, true)
}

func (c *control) tagsOf(r *pb.SandboxTagsGetRequest, first bool) (*pb.SandboxTagsGetResponse, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return pb.SandboxTagsGetResponse_builder{Tags: sb.tags}.Build(), nil
}

// SandboxTagsSetV2 replaces the tags of a sandbox.
func (c *control) SandboxTagsSetV2(_ context.Context, r *pb.SandboxTagsSetRequest) (*emptypb.Empty, error) {
	return c.setTags(r, false)
}

// SandboxTagsSet replaces those of one of the first version.
func (c *control) SandboxTagsSet(_ context.Context, r *pb.SandboxTagsSetRequest) (*emptypb.Empty, error) {
	return c.setTags(r, true)
}

func (c *control) setTags(r *pb.SandboxTagsSetRequest, first bool) (*emptypb.Empty, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.tags = r.GetTags()
	return &emptypb.Empty{}, nil
}
