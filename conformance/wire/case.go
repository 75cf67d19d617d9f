package wire

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Case is one thing that the suite checks.
type Case struct {
	// Name is a path of words, for example "refuses/bodies/no body".
	Name string
	// Run checks it.
	Run func(t T, s *Suite)
}

// Cases lists everything, in the order in which it is run.
func Cases() []Case {
	groups := [][]Case{
		controlPlaneCases(), powerCases(), processCases(), inputCases(), filesystemCases(), watchCases(), fileCases(), edgeCases(),
		refusals("bodies", refusedBodies),
		refusals("query", refusedQueries),
		refusals("paths", refusedPaths),
		refusals("headers", refusedHeaders),
		refusals("hosts", refusedHosts),
		refusals("signed urls", refusedSignatures),
		refusals("envelopes", refusedEnvelopes),
		refusals("multipart", refusedUploads),
	}
	var all []Case
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

// Result is how one case went.
type Result struct {
	Name string
	// Took is how long it ran.
	Took time.Duration
	// Failures is what it found wrong; empty when it passed.
	Failures []string
}

// Run runs every case whose name contains filter, one after the other, and reports each as it ends. It
// returns how many passed and failed; the error says that the suite could not be run at all.
func Run(ctx context.Context, target Target, filter string, report func(Result)) (passed, failed int, err error) {
	s, err := Open(ctx, target)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		closed := s.Close(context.WithoutCancel(ctx))
		if err == nil {
			err = closed
		}
	}()
	for _, c := range Cases() {
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
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
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
	return Result{Name: c.Name, Took: time.Since(started), Failures: r.failures}
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
