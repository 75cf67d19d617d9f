package bench

import (
	"context"
	"fmt"
	"time"
)

// Memory measures what open streams cost those who serve them, and whether an idle server uses the processors.
func (r *Report) Memory(ctx context.Context, targets []*Target) error {
	for _, t := range targets {
		if err := r.openStreams(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// Idle measures what processes that have nothing to do need: memory, and the processors over a while.
func (r *Report) Idle(ctx context.Context, name, target string, pids []int, over time.Duration) error {
	idle := MemoryOf(pids)
	r.add(name+", memory with its part of what is shared", target, "MB", float64(idle.Share)/1e6, len(pids))
	r.add(name+", resident memory", target, "MB", float64(idle.Resident)/1e6, len(pids))
	before := processorTime(pids)
	timer := time.NewTimer(over)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	r.add(name+", processor", target, "%", (processorTime(pids)-before).Seconds()/over.Seconds()*100, len(pids))
	return nil
}

// openStreams has many commands run that say nothing, and looks at the growth of the memory.
func (r *Report) openStreams(ctx context.Context, t *Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// What the first ones leave is not the price of a stream.
	for range 3 {
		if _, err := t.run(ctx, JSON, "/bin/true"); err != nil {
			return err
		}
	}
	before := MemoryOf(t.Processes)
	buffer := make([]byte, 1<<10)
	for range r.Scale.Streams {
		o, err := t.start(ctx, JSON, "/bin/sleep", "60") // it ends by itself: a server may let it run on
		if err != nil {
			return err
		}
		defer o.body.Close()
		if _, _, err := o.next(buffer); err != nil { // it has started
			return fmt.Errorf("%s: the start of a stream: %w", t.Name, err)
		}
	}
	grown := MemoryOf(t.Processes).Minus(before)
	r.add("memory of an open stream", t.Name, "KB", float64(grown.Own)/1e3/float64(r.Scale.Streams), r.Scale.Streams)
	return nil
}
