package process

import (
	"context"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

// Connect streams the events of a process from now on. Of a process that ended within the retention it tells
// the end alone. Its time limit ends the stream and not the process.
func (s *Service) Connect(ctx context.Context, req *connect.Request[wire.ConnectRequest], out *connect.ServerStream[wire.ConnectResponse]) error {
	live, recent, err := s.table.findRecent(req.Msg.GetProcess())
	if err != nil {
		return err
	}
	if live == nil {
		live = &running{pid: recent.pid}
		live.out.finish(recent.end)
	}
	events := live.out.subscribe(ctx)
	defer events.leave()
	return stream(ctx, live.pid, events, keepalive(req.Header()), func(e *wire.ProcessEvent) error {
		return out.Send(&wire.ConnectResponse{Event: e})
	})
}
