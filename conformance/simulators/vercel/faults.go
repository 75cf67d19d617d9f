//go:build linux

package vercel

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fault is something that goes wrong. All of it can be combined; what happens first is the delay.
type Fault struct {
	// Operation is the name of the one that it strikes; empty: all.
	Operation string `json:"operation"`
	// Skip lets so many calls pass, Times strikes so many; 0: all that follow.
	Skip  int `json:"skip"`
	Times int `json:"times"`
	// DelayMS is waited before anything else.
	DelayMS int `json:"delayMs"`
	// Status answers an error, with Code, Message and RetryAfterS, instead of doing the work.
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	RetryAfterS int    `json:"retryAfterS"`
	// Body answers with this text instead, as a proxy on the way does, and BodyType is its type.
	Body     string `json:"body"`
	BodyType string `json:"bodyType"`
	// Lose does the work and closes the connection without an answer.
	Lose bool `json:"lose"`
	// Cut does the work and closes the connection after so many bytes of the answer.
	Cut int `json:"cut"`
}

// faults are the planned ones.
type faults struct {
	mu   sync.Mutex
	plan []*Fault
}

// Inject plans a fault behind those that are planned. Without one the plan is emptied.
func (s *Server) Inject(more ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if len(more) == 0 {
		s.faults.plan = nil
	}
	for _, one := range more {
		s.faults.plan = append(s.faults.plan, &one)
	}
}

// next is what strikes this call; nil: nothing does.
func (f *faults) next(operation string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range f.plan {
		if one.Operation != "" && one.Operation != operation {
			continue
		}
		if one.Skip > 0 {
			one.Skip--
			return nil
		}
		if one.Times == 1 {
			f.plan = slices.Delete(f.plan, i, i+1)
		}
		if one.Times > 1 {
			one.Times--
		}
		struck := *one
		return &struck
	}
	return nil
}

// apply lets the fault strike one call.
func (f *Fault) apply(w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter)) {
	if f == nil {
		do(w)
		return
	}
	if f.DelayMS > 0 {
		select {
		case <-time.After(time.Duration(f.DelayMS) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Body != "":
		w.Header().Set("Content-Type", f.BodyType)
		w.WriteHeader(max(f.Status, http.StatusOK))
		_, _ = io.WriteString(w, f.Body)
	case f.Status != 0:
		failure := fail(f.Status, f.Code, f.Message)
		failure.retryAfter = time.Duration(f.RetryAfterS) * time.Second
		writeFailure(w, failure)
	case f.Lose:
		do(&discarded{header: http.Header{}})
		panic(http.ErrAbortHandler)
	case f.Cut > 0:
		do(&cut{ResponseWriter: w, left: f.Cut})
	default:
		do(w)
	}
}

// discarded is an answer that nobody gets.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// cut is an answer that ends in its midst.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; err == nil && c.left <= 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return len(p), err
}

// Unwrap gives the controller what is inside.
func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }
