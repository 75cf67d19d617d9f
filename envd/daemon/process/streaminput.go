package process

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	wire "github.com/isthmus/isthmus/envd/process"
)

// StreamInput writes input piece by piece: first which process, then its bytes.
func (s *Service) StreamInput(ctx context.Context, in *connect.ClientStream[wire.StreamInputRequest]) (*connect.Response[wire.StreamInputResponse], error) {
	var r *running
	for in.Receive() {
		switch event := in.Msg().GetEvent().(type) {
		case *wire.StreamInputRequest_Start:
			found, err := s.table.find(event.Start.GetProcess())
			if err != nil {
				return nil, err
			}
			r = found
		case *wire.StreamInputRequest_Data:
			if r == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument,
					errors.New("data before start: the first message must say which process the input is for"))
			}
			if err := r.feed(ctx, event.Data.GetInput()); err != nil {
				return nil, err
			}
		case *wire.StreamInputRequest_Keepalive:
		default:
			return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid event type %T", event))
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&wire.StreamInputResponse{}), nil
}
