//go:build linux

package modal

import (
	"context"
	"net/netip"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TaskSnapshotFilesystem makes an image of what the files of a task are now. The same id is the same image.
func (r *router) TaskSnapshotFilesystem(ctx context.Context, q *pb.TaskSnapshotFilesystemRequest) (*pb.TaskSnapshotFilesystemResponse, error) {
	sb, err := r.task(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	ttl := q.GetTtlSeconds()
	if !q.HasTtlSeconds() || ttl == 0 || ttl < -1 {
		return nil, status.Error(codes.InvalidArgument, "ttl_seconds must be positive, or -1")
	}
	sb.copying.Lock()
	defer sb.copying.Unlock()
	if id := sb.snapshots[q.GetSnapshotId()]; id != "" && q.GetSnapshotId() != "" {
		return pb.TaskSnapshotFilesystemResponse_builder{ImageId: id}.Build(), nil
	}
	sb.mu.Lock()
	box := sb.box
	sb.mu.Unlock()
	if box == nil {
		return nil, status.Error(codes.NotFound, "the Task has finished")
	}
	snapshot, err := box.Snapshot(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "the files could not be copied: %v", err)
	}
	one := &image{id: newID("im"), snapshot: snapshot, result: result(pb.GenericResult_GENERIC_STATUS_SUCCESS, 0, "")}
	if ttl > 0 {
		one.expires = time.Now().Add(time.Duration(ttl) * time.Second)
	}
	r.mu.Lock()
	r.images[one.id] = one
	r.mu.Unlock()
	sb.snapshots[q.GetSnapshotId()] = one.id
	return pb.TaskSnapshotFilesystemResponse_builder{ImageId: one.id}.Build(), nil
}

// TaskSetNetworkAccess replaces what a task may reach. Only an allowlist can be set, and only where there is a
// network.
func (r *router) TaskSetNetworkAccess(ctx context.Context, q *pb.TaskSetNetworkAccessRequest) (*pb.TaskSetNetworkAccessResponse, error) {
	sb, err := r.task(ctx, q.GetTaskId())
	if err != nil {
		return nil, err
	}
	access := q.GetNetworkAccess()
	if access.GetNetworkAccessType() != pb.NetworkAccess_ALLOWLIST {
		return nil, status.Error(codes.InvalidArgument, "only an allowlist can be set")
	}
	if sb.definition.GetNetworkAccess().GetNetworkAccessType() == pb.NetworkAccess_BLOCKED {
		return nil, status.Error(codes.FailedPrecondition, "the network of this Sandbox is blocked")
	}
	if err := checkAccess(access); err != nil {
		return nil, err
	}
	if err := r.lead(ctx, sb, func(next *rules) { next.access = access }); err != nil {
		return nil, err
	}
	return &pb.TaskSetNetworkAccessResponse{}, nil
}

// checkAccess refuses entries that are no addresses or names.
func checkAccess(access *pb.NetworkAccess) error {
	for _, entry := range access.GetAllowedCidrs() {
		if _, err := netip.ParsePrefix(entry); err != nil {
			return status.Errorf(codes.InvalidArgument, "invalid CIDR: '%s'", entry)
		}
	}
	for _, entry := range access.GetAllowedDomains() {
		if entry == "" || strings.ContainsAny(strings.TrimPrefix(entry, "*."), "*/: ") {
			return status.Errorf(codes.InvalidArgument, "invalid domain: '%s'", entry)
		}
	}
	return nil
}
