package filesystem

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// Remove removes a file, a link or a whole tree; a missing path is success.
func (s *Service) Remove(ctx context.Context, req *connect.Request[pb.RemoveRequest]) (*connect.Response[pb.RemoveResponse], error) {
	path, _, err := s.expand(ctx, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if err := s.tree.Remove(path); err != nil {
		return nil, fault(fmt.Errorf("error removing file or directory: %w", err))
	}
	return connect.NewResponse(&pb.RemoveResponse{}), nil
}
