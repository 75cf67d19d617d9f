package modal

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sentMark notes whether anything of a call has left this process: a call of which nothing did cannot have happened.
// gRPC's own codes do not tell.
type sentMark struct{ sent atomic.Bool }

type sentKey struct{}

func (m *sentMark) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, m)
}

func (m *sentMark) was() bool { return m.sent.Load() }

// sentHandler sets the marks. The call for an auth token has one, too: it is another method.
type sentHandler struct{}

const authMethod = "/modal.client.ModalClient/AuthTokenGet"

// TagRPC takes the mark off calls that make nothing.
func (sentHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if info.FullMethodName == authMethod {
		return context.WithValue(ctx, sentKey{}, (*sentMark)(nil))
	}
	return ctx
}

// HandleRPC notes that the message was written.
func (sentHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, out := event.(*stats.OutPayload); !out {
		return
	}
	if mark, _ := ctx.Value(sentKey{}).(*sentMark); mark != nil {
		mark.sent.Store(true)
	}
}

// TagConn has nothing to do.
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn has nothing to do.
func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}
