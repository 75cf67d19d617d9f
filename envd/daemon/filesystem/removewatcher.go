package filesystem

import (
	"context"

	"connectrpc.com/connect"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// RemoveWatcher ends a polled watcher.
func (s *Service) RemoveWatcher(_ context.Context, req *connect.Request[pb.RemoveWatcherRequest]) (*connect.Response[pb.RemoveWatcherResponse], error) {
	id := req.Msg.GetWatcherId()
	s.mu.Lock()
	w := s.polled[id]
	delete(s.polled, id)
	s.mu.Unlock()
	if w == nil {
		return nil, noWatcher(id)
	}
	w.Close()
	return connect.NewResponse(&pb.RemoveWatcherResponse{}), nil
}
