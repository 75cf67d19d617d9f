//go:build linux

package modal

import (
	"context"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// clientPython is the type of the Python SDK.
const clientPython = "1"

// routerURL is where a client finds the router. All SDKs speak to this server without TLS, but those of JavaScript
// and Go want to read https all the same.
func (s *Server) routerURL(ctx context.Context) string {
	if client(ctx) == clientPython {
		return s.url
	}
	return strings.Replace(s.url, "http://", "https://", 1)
}

// SandboxGetCommandRouterAccess tells the way to the router of a sandbox.
func (c *control) SandboxGetCommandRouterAccess(ctx context.Context, r *pb.SandboxGetCommandRouterAccessRequest) (*pb.SandboxGetCommandRouterAccessResponse, error) {
	c.mu.Lock()
	sb := c.sandboxes[r.GetSandboxId()]
	if r.HasTaskId() {
		sb = c.tasks[r.GetTaskId()]
	}
	c.mu.Unlock()
	if err := reachable(sb); err != nil {
		return nil, err
	}
	return pb.SandboxGetCommandRouterAccessResponse_builder{Jwt: c.token(sb.task), Url: c.routerURL(ctx)}.Build(), nil
}

// TaskGetCommandRouterAccess tells the way to the router of a task.
func (c *control) TaskGetCommandRouterAccess(ctx context.Context, r *pb.TaskGetCommandRouterAccessRequest) (*pb.TaskGetCommandRouterAccessResponse, error) {
	c.mu.Lock()
	sb := c.tasks[r.GetTaskId()]
	c.mu.Unlock()
	if err := reachable(sb); err != nil {
		return nil, err
	}
	return pb.TaskGetCommandRouterAccessResponse_builder{Jwt: c.token(sb.task), Url: c.routerURL(ctx)}.Build(), nil
}

func reachable(sb *sandbox) error {
	if sb == nil {
		return status.Error(codes.NotFound, "Sandbox not found")
	}
	if sb.over() {
		return status.Error(codes.FailedPrecondition, "the Sandbox has already finished")
	}
	return nil
}

// task finds a running sandbox by its task, for a caller whose token is for it, and notes that it is used.
func (s *Server) task(ctx context.Context, id string) (*sandbox, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if subject, err := s.subject(bearer(md)); err != nil || subject != id {
		return nil, status.Error(codes.PermissionDenied, "the token is for another task")
	}
	s.mu.Lock()
	sb := s.tasks[id]
	s.mu.Unlock()
	if sb == nil || sb.over() {
		return nil, status.Errorf(codes.NotFound, "Task '%s' not found: it has finished, or never was", id)
	}
	sb.touch()
	return sb, nil
}
