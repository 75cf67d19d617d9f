package filesystem

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// Stat describes one entry, itself when it is a link. A path below a file is not found, so that the SDKs'
// exists answers false for it (upstream fails there).
func (s *Service) Stat(ctx context.Context, req *connect.Request[pb.StatRequest]) (*connect.Response[pb.StatResponse], error) {
	path, _, err := s.expand(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	entry, err := s.tree.Stat(path)
	switch {
	case err == nil:
		return connect.NewResponse(&pb.StatResponse{Entry: entry}), nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("file not found: %w", err))
	}
	return nil, fault(fmt.Errorf("error getting file info: %w", err))
}
