//go:build linux

package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// longestWait bounds a call that waits.
const longestWait = 55 * time.Second

// wait waits for a channel, at most so many seconds.
func wait(ctx context.Context, done <-chan struct{}, secs float32) {
	timer := time.NewTimer(min(time.Duration(float64(secs)*float64(time.Second)), longestWait))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// SandboxWaitV2 waits for the end of a sandbox.
func (c *control) SandboxWaitV2(ctx context.Context, r *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	return c.waitFor(ctx, r, false)
}

// SandboxWait waits for the end of one of the first version.
func (c *control) SandboxWait(ctx context.Context, r *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	return c.waitFor(ctx, r, true)
}

func (c *control) waitFor(ctx context.Context, r *pb.SandboxWaitRequest, first bool) (*pb.SandboxWaitResponse, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	wait(ctx, sb.finished, r.GetTimeout())
	return pb.SandboxWaitResponse_builder{Result: sb.outcome(), Metadata: sb.metadata()}.Build(), nil
}

// SandboxTerminateV2 ends a sandbox. One that has ended is success.
func (c *control) SandboxTerminateV2(_ context.Context, r *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse, error) {
	return c.terminate(r, false)
}

// SandboxTerminate ends one of the first version.
func (c *control) SandboxTerminate(_ context.Context, r *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse, error) {
	return c.terminate(r, true)
}

func (c *control) terminate(r *pb.SandboxTerminateRequest, first bool) (*pb.SandboxTerminateResponse, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	before := sb.outcome()
	sb.end(result(pb.GenericResult_GENERIC_STATUS_TERMINATED, 137, ""))
	return pb.SandboxTerminateResponse_builder{ExistingResult: before}.Build(), nil
}

// SandboxGetTaskIdV2 returns the task of a sandbox.
func (c *control) SandboxGetTaskIdV2(ctx context.Context, r *pb.SandboxGetTaskIdRequest) (*pb.SandboxGetTaskIdResponse, error) {
	return c.taskOf(ctx, r, false)
}

// SandboxGetTaskId returns the task of one of the first version; none while it is not placed.
func (c *control) SandboxGetTaskId(ctx context.Context, r *pb.SandboxGetTaskIdRequest) (*pb.SandboxGetTaskIdResponse, error) {
	return c.taskOf(ctx, r, true)
}

func (c *control) taskOf(ctx context.Context, r *pb.SandboxGetTaskIdRequest, first bool) (*pb.SandboxGetTaskIdResponse, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	wait(ctx, sb.placed, r.GetTimeout())
	answer := pb.SandboxGetTaskIdResponse_builder{TaskResult: sb.outcome()}
	select {
	case <-sb.placed:
		answer.TaskId = &sb.task
	default:
	}
	return answer.Build(), nil
}

// SandboxWaitUntilReady waits until a sandbox is placed: probes are not simulated.
func (c *control) SandboxWaitUntilReady(ctx context.Context, r *pb.SandboxWaitUntilReadyRequest) (*pb.SandboxWaitUntilReadyResponse, error) {
	sb, err := c.find(r.GetSandboxId(), true)
	if err != nil {
		return nil, err
	}
	wait(ctx, sb.placed, r.GetTimeout())
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.started.IsZero() {
		return nil, status.Error(codes.DeadlineExceeded, "the Sandbox is not ready")
	}
	return pb.SandboxWaitUntilReadyResponse_builder{ReadyAt: seconds(sb.started)}.Build(), nil
}

// SandboxGetResourceUsage tells what a sandbox has used since it started.
func (c *control) SandboxGetResourceUsage(ctx context.Context, r *pb.SandboxGetResourceUsageRequest) (*pb.SandboxGetResourceUsageResponse, error) {
	c.mu.Lock()
	sb := c.sandboxes[r.GetSandboxId()]
	c.mu.Unlock()
	if sb == nil {
		return nil, status.Errorf(codes.NotFound, "Sandbox '%s' not found", r.GetSandboxId())
	}
	sb.mu.Lock()
	box, started, ended := sb.box, sb.started, sb.ended
	sb.mu.Unlock()
	if ended.IsZero() {
		ended = time.Now()
	}
	if started.IsZero() {
		started = ended
	}
	life := ended.Sub(started)
	answer := pb.SandboxGetResourceUsageResponse_builder{
		CpuCoreNanosecs: uint64(float64(sb.definition.GetResources().GetMilliCpu()) / 1000 * float64(life)),
		MemGibNanosecs:  uint64(float64(sb.definition.GetResources().GetMemoryMb()) / 1024 * float64(life)),
	}
	if gpu := sb.definition.GetResources().GetGpuConfig(); gpu.GetGpuType() != "" {
		kind := gpu.GetGpuType()
		answer.GpuType, answer.GpuNanosecs = &kind, uint64(life)*uint64(max(gpu.GetCount(), 1))
	}
	if box != nil {
		if usage, err := box.Usage(ctx); err == nil {
			answer.CpuCoreNanosecs = max(answer.CpuCoreNanosecs, usedCores(usage))
		}
	}
	return answer.Build(), nil
}
