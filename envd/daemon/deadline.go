package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// recheck bounds how long a deadline's timer runs at a time: timers stand still while a machine sleeps, the
// clock on the wall does not.
const recheck = time.Minute

// maxBody bounds the JSON bodies of internal routes, in bytes.
const maxBody = 4 << 20

// deadline is the daemon's own end of life: the backstop for a facade that does not come back.
type deadline struct {
	mu    sync.Mutex
	at    time.Time
	moved chan struct{}
}

func newDeadline(at time.Time) *deadline {
	return &deadline{at: at, moved: make(chan struct{}, 1)}
}

// move sets the deadline; the zero time is none.
func (d *deadline) move(at time.Time) {
	d.mu.Lock()
	d.at = at
	d.mu.Unlock()
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// left is how long to sleep before looking again, and whether the deadline has passed.
func (d *deadline) left() (sleep time.Duration, passed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return recheck, false
	}
	left := time.Until(d.at.Round(0))
	return min(left, recheck), left <= 0
}

// run calls passed once the deadline has passed, and returns then or when ctx ends.
func (d *deadline) run(ctx context.Context, passed func()) {
	for {
		sleep, over := d.left()
		if over {
			passed()
			return
		}
		timer := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.moved:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// serveDeadline moves the deadline: PUT {"deadline": RFC 3339}; the zero time is none.
func (d *Daemon) serveDeadline(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodPut) {
		return
	}
	var body struct {
		Deadline *time.Time `json:"deadline"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil || body.Deadline == nil {
		writeError(w, http.StatusBadRequest, `the body must be {"deadline": "<RFC 3339 time>"}`)
		return
	}
	d.deadline.move(*body.Deadline)
	w.WriteHeader(http.StatusNoContent)
}
