package daytona

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is something that goes wrong on demand.
type Fault struct {
	// Name is one of FaultNames.
	Name string `json:"fault"`
	// Operation is the call that it hits, by the name of its route, or of the toolbox: execute, session, exec, logs,
	// upload, download; empty: every call.
	Operation string `json:"operation,omitempty"`
	// Times is how many calls it hits; 0: until it is taken away.
	Times int `json:"times,omitempty"`
	// Milliseconds is how long slow and lying last; 0: a second.
	Milliseconds int `json:"milliseconds,omitempty"`
}

// The faults that are not answers of their own.
const (
	FaultSlow    = "slow"     // the answer comes late
	FaultReset   = "reset"    // the connection breaks before anything was done
	FaultLost    = "lost"     // it was done, and the connection breaks before the answer
	FaultHTML    = "html"     // it was done, and a page comes instead of JSON
	FaultCut     = "cut"      // the answer ends in its middle
	FaultLying   = "lying"    // the state before is shown for a while
	FaultFrames  = "frames"   // a stream of logs comes in frames of one byte
	FaultRunner  = "runner"   // the sandbox ends in the state error: no runner took it
	FaultImage   = "image"    // the sandbox ends in the state build_failed
	FaultCorrupt = "corrupt"  // the sandbox ends in the state error for another reason
	FaultBreaks  = "breaks"   // at stop: the sandbox comes to the state error instead, of which it can be recovered
	FaultLostWay = "lost way" // nothing was done: a proxy before the API answers a page, with 404
	FaultNoRoute = "no route" // nothing was done: a proxy before the API answers JSON of its own, with 404
)

// answers are the rows of the cloud's map of errors: its texts are what tells them apart.
func answers() map[string]*failure {
	return map[string]*failure{
		"capacity":          invalid("No available runners"),
		"capacity gpu":      invalid("No available runners with GPU type H100"),
		"quota cpu":         invalid("Total CPU limit exceeded. Maximum allowed: 10.\nTo increase concurrency limits, upgrade your organization's Tier."),
		"quota memory":      invalid("Total memory limit exceeded. Maximum allowed: 20GiB."),
		"quota disk":        invalid("Total disk limit exceeded. Maximum allowed: 30GiB."),
		"quota gpu":         invalid("Total GPU limit exceeded. Maximum allowed: 0."),
		"too large":         invalid("CPU request 16 exceeds maximum allowed per sandbox (4)."),
		"not started":       invalid("bad request: failed to get runner info: Is the Sandbox started?"),
		"invalid":           invalid("labels must be an object"),
		"unauthorized":      {Status: http.StatusUnauthorized, Message: "Invalid credentials"},
		"suspended":         {Status: http.StatusForbidden, Message: "Organization is suspended: Please add a payment method"},
		"region":            {Status: http.StatusForbidden, Message: "Region eu is not available to the organization"},
		"forbidden":         {Status: http.StatusForbidden, Message: "Access denied"},
		"not found":         notFound("Sandbox with ID or name not found"),
		"execution timeout": ofDaemon(http.StatusRequestTimeout, "PROCESS_EXECUTION_TIMEOUT", "command execution timeout"),
		"exists":            conflict("Sandbox with name taken already exists"),
		"state change":      conflict("Sandbox state change in progress"),
		"job conflict":      conflict("A job for this sandbox is already in progress"),
		"session ended":     ofDaemon(http.StatusGone, "SESSION_ENDED", "session has ended"),
		"command completed": ofDaemon(http.StatusGone, "COMMAND_ALREADY_COMPLETED", "command has already completed"),
		"class":             unsupported("Operation is not supported for sandbox class container"),
		"rate limit":        tooMany(throttleCreate, "7"),
		"internal":          {Status: http.StatusInternalServerError, Message: "Internal server error"},
		"bad gateway":       {Status: http.StatusBadGateway, Message: "Bad gateway"},
		"outage":            {Status: http.StatusServiceUnavailable, Message: "Service unavailable"},
	}
}

// ofProxy are what proxies say that know no way to the API.
func ofProxy() map[string]string {
	return map[string]string{FaultLostWay: "<html><body>404 Not Found</body></html>", FaultNoRoute: `{"message":"no Route matched with those values"}`}
}

// FaultNames lists every fault that can be switched on.
func FaultNames() []string {
	names := slices.Collect(maps.Keys(answers()))
	names = append(names, FaultSlow, FaultReset, FaultLost, FaultHTML, FaultCut, FaultLying, FaultFrames, FaultRunner, FaultImage, FaultCorrupt, FaultBreaks, FaultLostWay, FaultNoRoute)
	slices.Sort(names)
	return names
}

// faults are those that are switched on.
type faults struct {
	mu sync.Mutex
	on []Fault
}

// Strike switches a fault on.
func (s *Simulator) Strike(f Fault) error {
	if !slices.Contains(FaultNames(), f.Name) {
		return fmt.Errorf("there is no fault %q: there are %s", f.Name, strings.Join(FaultNames(), ", "))
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.on = append(s.faults.on, f)
	return nil
}

// Heal switches all faults off.
func (s *Simulator) Heal() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.on = nil
}

// strike takes the first fault that is meant for an operation.
func (f *faults) strike(operation string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.on {
		one := &f.on[i]
		if one.Operation != "" && one.Operation != operation {
			continue
		}
		struck := *one
		if one.Times > 0 {
			if one.Times--; one.Times == 0 {
				f.on = slices.Delete(f.on, i, i+1)
			}
		}
		return &struck
	}
	return nil
}

func (f *Fault) is(name string) bool { return f != nil && f.Name == name }

// lasting is how long a fault lasts that takes time.
func (f *Fault) lasting() time.Duration {
	return time.Duration(cmp.Or(f.Milliseconds, 1000)) * time.Millisecond
}

// before answers in place of the operation, if that is what the fault does.
func (f *Fault) before(w http.ResponseWriter, r *http.Request) bool {
	if f == nil {
		return false
	}
	if f.Name == FaultSlow {
		pause(r.Context(), f.lasting())
		return false
	}
	if f.Name == FaultReset {
		panic(http.ErrAbortHandler)
	}
	if text := ofProxy()[f.Name]; text != "" {
		w.Header().Set("Content-Type", http.DetectContentType([]byte(text)))
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(text))
		return true
	}
	if row := answers()[f.Name]; row != nil {
		refuse(w, r, row)
		return true
	}
	return false
}

// after answers in place of the operation's outcome.
func (f *Fault) after(w http.ResponseWriter, _ *http.Request) bool {
	switch {
	case f.is(FaultLost):
		panic(http.ErrAbortHandler)
	case f.is(FaultHTML):
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>We will be back soon</body></html>"))
		return true
	case f.is(FaultCut):
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(`{"id":"`))
		panic(http.ErrAbortHandler)
	}
	return false
}

type faultKey struct{}

func withFault(ctx context.Context, f *Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

// faultOf is the fault that hits this call; nil: none.
func faultOf(ctx context.Context) *Fault {
	f, _ := ctx.Value(faultKey{}).(*Fault)
	return f
}

// serveFaults switches faults by hand: GET lists, POST switches one on, DELETE all of them off.
func (s *Simulator) serveFaults(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		var f Fault
		err := read(r, &f)
		if err == nil {
			if struck := s.Strike(f); struck != nil {
				err = invalid(struck.Error())
			}
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		answer(w, http.StatusCreated, f)
	case http.MethodDelete:
		s.Heal()
		answer(w, http.StatusNoContent, nil)
	default:
		s.faults.mu.Lock()
		on := slices.Clone(s.faults.on)
		s.faults.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"on": on, "known": FaultNames()})
	}
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
