package filesystem

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// GetWatcherEvents takes the events that a watcher has collected, those of the moment before included: clients
// write a file and ask at once.
func (s *Service) GetWatcherEvents(_ context.Context, req *connect.Request[pb.GetWatcherEventsRequest]) (*connect.Response[pb.GetWatcherEventsResponse], error) {
	s.mu.Lock()
	w := s.polled[req.Msg.GetWatcherId()]
	s.mu.Unlock()
	if w == nil {
		return nil, noWatcher(req.Msg.GetWatcherId())
	}
	s.engine.Flush()
	events, err := w.take()
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.GetWatcherEventsResponse{Events: events}), nil
}

func noWatcher(id string) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("watcher with id %s not found", id))
}
