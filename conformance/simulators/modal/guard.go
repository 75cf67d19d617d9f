//go:build linux

package modal

import (
	"context"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The services, as they are written in the names of methods.
const (
	controlService = "/modal.client.ModalClient/"
	routerService  = "/modal.task_command_router.TaskCommandRouter/"
)

// unary is in front of every call that is not a stream.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	method := methodName(info.FullMethod)
	fault := s.faults.strike(method)
	if err := fault.before(ctx); err != nil {
		return nil, err
	}
	answer, err := handler(ctx, request)
	if err != nil {
		return nil, err
	}
	return fault.after(answer)
}

// stream is in front of every call that is one.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := s.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	fault := s.faults.strike(methodName(info.FullMethod))
	if err := fault.before(stream.Context()); err != nil {
		return err
	}
	return handler(server, fault.wrap(stream))
}

func methodName(full string) string {
	_, name, _ := cutLast(full, "/")
	return name
}

// admit looks whether the caller may. The two services have credentials of their own.
func (s *Server) admit(ctx context.Context, method string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if strings.HasPrefix(method, routerService) {
		return s.admitRouter(md)
	}
	if !same(first(md, "x-modal-token-id"), s.config.TokenID) || !same(first(md, "x-modal-token-secret"), s.config.TokenSecret) {
		return status.Error(codes.Unauthenticated, "Token validation failed: the token ID or secret is wrong")
	}
	// Only the second version of sandboxes needs an auth token: the Python SDK sends none with other calls.
	token := first(md, "x-modal-auth-token")
	if token == "" && !strings.HasSuffix(method, "V2") {
		return nil
	}
	if _, err := s.subject(token); err != nil {
		return status.Error(codes.Unauthenticated, "the auth token is refused: "+err.Error())
	}
	return nil
}

// admitRouter looks at the router's token; whether it is for this task is looked at where the task is found.
func (s *Server) admitRouter(md metadata.MD) error {
	if _, err := s.subject(bearer(md)); err != nil {
		return status.Error(codes.Unauthenticated, "the router's token is refused: "+err.Error())
	}
	return nil
}

func bearer(md metadata.MD) string { return strings.TrimPrefix(first(md, "authorization"), "Bearer ") }

func first(md metadata.MD, name string) string {
	if values := md.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// client is the kind of the calling SDK.
func client(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return first(md, "x-modal-client-type")
}
