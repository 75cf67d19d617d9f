package filesystem

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// MakeDir makes a folder and every missing parent, owned by the user of the request.
func (s *Service) MakeDir(ctx context.Context, req *connect.Request[pb.MakeDirRequest]) (*connect.Response[pb.MakeDirResponse], error) {
	path, user, err := s.expand(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	created, err := s.tree.MakeFolders(path, owner(user))
	var inTheWay tree.NotFolderError
	switch {
	case errors.As(err, &inTheWay) && string(inTheWay) == filepath.Clean(path):
		return nil, connect.NewError(connect.CodeInvalidArgument,
			fmt.Errorf("path already exists but it is not a directory: %s", path))
	case err != nil:
		return nil, fault(fmt.Errorf("error creating directory: %w", err))
	case !created:
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", path))
	}
	entry, err := s.entry(path)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MakeDirResponse{Entry: entry}), nil
}
