package process

import (
	"context"
	"sync"

	wire "github.com/isthmus/isthmus/envd/process"
)

// backlog is how many events a client may lie behind before it holds the process up.
const backlog = 16

// message is one event with the chunk that it points into, which whoever gets the message releases.
type message struct {
	event *wire.ProcessEvent
	chunk *chunk // nil: it points into none
}

// fanout gives every subscriber every event in the same order. It waits for a subscriber that does not read,
// so that a slow client slows the program down instead of filling memory, until that subscriber goes away.
type fanout struct {
	// order is held while an event is handed out.
	order sync.Mutex

	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
	end         *wire.ProcessEvent
}

// subscriber is one client that follows a process.
type subscriber struct {
	events chan message
	gone   <-chan struct{}
	leave  func()
}

// subscribe adds a subscriber until ctx ends or its leave is called, which must happen. After the end it gets
// the end alone.
func (f *fanout) subscribe(ctx context.Context) *subscriber {
	ctx, cancel := context.WithCancel(ctx)
	s := &subscriber{events: make(chan message, backlog), gone: ctx.Done()}
	s.leave = func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subscribers, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end != nil {
		s.events <- message{event: f.end}
		return s
	}
	if f.subscribers == nil {
		f.subscribers = map[*subscriber]struct{}{}
	}
	f.subscribers[s] = struct{}{}
	return s
}

// publish hands an event to everybody who follows now. It is not made when nobody does.
func (f *fanout) publish(event func() message) {
	f.order.Lock()
	defer f.order.Unlock()
	if present := f.present(nil); len(present) > 0 {
		deliver(event(), present)
	}
}

// finish hands out the end; subscribers that come later get it at once.
func (f *fanout) finish(end *wire.ProcessEvent) {
	f.order.Lock()
	defer f.order.Unlock()
	deliver(message{event: end}, f.present(end))
}

// present lists the subscribers, and closes the door for new ones when there is an end.
func (f *fanout) present(end *wire.ProcessEvent) []*subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end != nil {
		f.end = end
	}
	present := make([]*subscriber, 0, len(f.subscribers))
	for s := range f.subscribers {
		present = append(present, s)
	}
	return present
}

func deliver(m message, to []*subscriber) {
	if m.chunk != nil {
		m.chunk.hold(len(to))
	}
	for _, s := range to {
		select {
		case s.events <- m:
		case <-s.gone:
			m.chunk.release()
		}
	}
}
