package filesystem

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// Move renames within one file system. The destination's parents are made first, even if the source is missing.
func (s *Service) Move(ctx context.Context, req *connect.Request[pb.MoveRequest]) (*connect.Response[pb.MoveResponse], error) {
	source, user, err := s.expand(ctx, req.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	destination, _, err := s.expand(ctx, req.Msg.GetDestination())
	if err != nil {
		return nil, err
	}
	if _, err := s.tree.MakeFolders(filepath.Dir(destination), owner(user)); err != nil {
		return nil, fault(fmt.Errorf("error creating the parents of the destination: %w", err))
	}
	if err := s.tree.Move(source, destination); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("source file not found: %w", err))
		}
		return nil, fault(fmt.Errorf("error renaming: %w", err))
	}
	entry, err := s.entry(destination)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MoveResponse{Entry: entry}), nil
}
