//go:build linux

package modal

import (
	"context"
	"maps"
	"sync"

	"google.golang.org/grpc/stats"
)

// Count is what one method was used for.
type Count struct {
	Calls int
	// In and Out are the bytes of messages, as they were on the wire.
	In, Out int
}

// Calls returns how often each method was called since the last Reset, by the name of its RPC.
func (s *Server) Calls() map[string]Count {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return maps.Clone(s.calls.by)
}

// ResetCalls begins to count anew.
func (s *Server) ResetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.by = nil
}

// calls counts. It is a stats.Handler.
type calls struct {
	mu sync.Mutex
	by map[string]Count
}

type methodKey struct{}

// TagRPC notes the method of a call.
func (c *calls) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, methodName(info.FullMethodName))
}

// HandleRPC counts.
func (c *calls) HandleRPC(ctx context.Context, event stats.RPCStats) {
	method, _ := ctx.Value(methodKey{}).(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]Count{}
	}
	count := c.by[method]
	switch e := event.(type) {
	case *stats.Begin:
		count.Calls++
	case *stats.InPayload:
		count.In += e.WireLength
	case *stats.OutPayload:
		count.Out += e.WireLength
	}
	c.by[method] = count
}

// TagConn and HandleConn have nothing to do.
func (c *calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn has nothing to do.
func (c *calls) HandleConn(context.Context, stats.ConnStats) {}
