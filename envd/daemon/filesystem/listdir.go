package filesystem

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// ListDir lists a folder down to a depth; depth 0 means 1.
func (s *Service) ListDir(ctx context.Context, req *connect.Request[pb.ListDirRequest]) (*connect.Response[pb.ListDirResponse], error) {
	path, _, err := s.expand(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	entries, err := s.tree.List(ctx, path, req.Msg.GetDepth())
	switch {
	case err == nil:
		return connect.NewResponse(&pb.ListDirResponse{Entries: entries}), nil
	case errors.Is(err, unix.ENOENT):
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("path not found: %w", err))
	case errors.Is(err, unix.ENOTDIR):
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path is not a directory: %s", path))
	case errors.Is(err, unix.ELOOP):
		return nil, connect.NewError(connect.CodeFailedPrecondition,
			fmt.Errorf("cyclic symlink or chain >255 links at %q", path))
	case errors.Is(err, tree.ErrTooMany):
		return nil, connect.NewError(connect.CodeResourceExhausted, err)
	}
	return nil, fault(fmt.Errorf("error reading directory: %w", err))
}
