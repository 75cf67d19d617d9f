package filesystem

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd/daemon/stack"
	pb "github.com/isthmus/isthmus/envd/filesystem"
)

// keepaliveHeader asks, in seconds, how long a stream may be silent.
const keepaliveHeader = "Keepalive-Ping-Interval"

// The keepalive interval when the client names none, and its bounds.
const (
	defaultKeepalive = 90 * time.Second
	minKeepalive     = time.Second
	maxKeepalive     = time.Hour
)

// WatchDir streams what changes in a folder until the client hangs up, its deadline passes or the watcher fails.
func (s *Service) WatchDir(ctx context.Context, req *connect.Request[pb.WatchDirRequest], stream *connect.ServerStream[pb.WatchDirResponse]) error {
	w, err := s.watch(ctx, req.Msg)
	if err != nil {
		return err
	}
	defer w.Close()
	start := &pb.WatchDirResponse{Event: &pb.WatchDirResponse_Start{Start: &pb.WatchDirResponse_StartEvent{}}}
	stack.Apart(func() { err = stream.Send(start) }) // the answer's header goes with it
	if err != nil {
		return err
	}
	interval := keepalive(req.Header())
	silence := time.NewTimer(interval)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return fault(ctx.Err())
		case <-w.Ready():
			err = w.send(stream)
		case <-silence.C:
			err = stream.Send(&pb.WatchDirResponse{
				Event: &pb.WatchDirResponse_Keepalive{Keepalive: &pb.WatchDirResponse_KeepAlive{}},
			})
		}
		if err != nil {
			return err
		}
		silence.Reset(interval)
	}
}

// send passes on what has happened, one message for each event.
func (w *watched) send(stream *connect.ServerStream[pb.WatchDirResponse]) error {
	events, err := w.take()
	if err != nil {
		return err
	}
	for _, event := range events {
		message := &pb.WatchDirResponse{Event: &pb.WatchDirResponse_Filesystem{Filesystem: event}}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	return nil
}

// keepalive reads the interval that a client asks for; what is no whole number is as good as nothing.
func keepalive(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get(keepaliveHeader))
	if err != nil {
		return defaultKeepalive
	}
	// Bounded before the multiplication, which could overflow.
	seconds = min(max(seconds, int(minKeepalive/time.Second)), int(maxKeepalive/time.Second))
	return time.Duration(seconds) * time.Second
}
