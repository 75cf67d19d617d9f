package provider

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Result is how one case went.
type Result struct {
	Name string
	// Took is how long it ran.
	Took time.Duration
	// Failures is what it found wrong; empty when it passed.
	Failures []string
	// Declared is what the provider says of itself and the case rests on: after a failure, what it may be wrong in.
	Declared []adapters.Capability
}

// caseTime bounds one case outside of tests: clouds can be slow.
const caseTime = 10 * time.Minute

// Run runs every case of this adapter whose name contains filter, one after the other, and reports each as it ends.
// It returns how many passed and failed; the error says that the suite could not be run, or that something was left.
func Run(ctx context.Context, h Harness, filter string, report func(Result)) (passed, failed int, err error) {
	s, err := Open(ctx, h)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		closed := s.Close(context.WithoutCancel(ctx))
		if err == nil {
			err = closed
		}
	}()
	for _, c := range s.Cases() {
		if !strings.Contains(c.Name, filter) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return passed, failed, err
		}
		result := attempt(ctx, c, s)
		report(result)
		if len(result.Failures) == 0 {
			passed++
		} else {
			failed++
		}
	}
	return passed, failed, nil
}

// attempt runs one case in a goroutine of its own, which FailNow may end.
func attempt(ctx context.Context, c Case, s *Suite) Result {
	ctx, cancel := context.WithTimeout(ctx, caseTime)
	defer cancel()
	r := &runner{ctx: ctx}
	started := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if wrong := recover(); wrong != nil {
				r.Errorf("panic: %v", wrong)
			}
		}()
		c.Run(r, s)
	}()
	<-done
	result := Result{Name: c.Name, Took: time.Since(started), Failures: r.failures}
	for _, feature := range c.needs {
		result.Declared = append(result.Declared, s.can[feature])
	}
	return result
}

// runner is the T of the command line.
type runner struct {
	ctx      context.Context
	mu       sync.Mutex
	failures []string
}

func (r *runner) Helper()                  {}
func (r *runner) Logf(string, ...any)      {}
func (r *runner) FailNow()                 { runtime.Goexit() }
func (r *runner) Context() context.Context { return r.ctx }

func (r *runner) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
