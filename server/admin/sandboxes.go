package admin

import (
	"net/http"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// killsAtOnce bounds how many ends the operator's kill-all waits for at a time.
const killsAtOnce = 16

// Sandbox is one line of the operator's list.
type Sandbox struct {
	ID        string            `json:"id"`
	TeamID    string            `json:"teamID"`
	Template  string            `json:"template"`
	State     string            `json:"state"`
	Pool      string            `json:"pool"`
	StartedAt time.Time         `json:"startedAt,omitzero"`
	EndAt     time.Time         `json:"endAt,omitzero"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// Killed says how a kill of all sandboxes went.
type Killed struct {
	Killed int      `json:"killed"`
	Failed []string `json:"failed,omitempty"` // ids of those that are still there
}

func (a *Admin) listSandboxes(w http.ResponseWriter, r *http.Request) {
	all, err := a.config.Fleet.All(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := make([]Sandbox, len(all))
	for i, sb := range all {
		list[i] = Sandbox{ID: sb.ID, TeamID: sb.TeamID, Template: sb.Alias, State: string(sb.State), Pool: sb.Pool,
			StartedAt: sb.StartedAt, EndAt: sb.EndAt, Metadata: sb.Metadata}
	}
	answer(w, http.StatusOK, list)
}

func (a *Admin) killSandbox(w http.ResponseWriter, r *http.Request) {
	if err := a.config.Fleet.KillAny(r.Context(), r.PathValue("id")); err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *Admin) killAll(w http.ResponseWriter, r *http.Request) {
	all, err := a.config.Fleet.All(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, a.killThese(r, all))
}

func (a *Admin) killThese(r *http.Request, all []store.Sandbox) Killed {
	var result Killed
	var mu sync.Mutex
	var kills sync.WaitGroup
	room := make(chan struct{}, killsAtOnce)
	for _, sb := range all {
		if sb.State == store.StateCreating {
			continue // its own create ends it or completes it
		}
		room <- struct{}{}
		kills.Go(func() {
			defer func() { <-room }()
			err := a.config.Fleet.KillAny(r.Context(), sb.ID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				result.Killed++
			case adapters.KindOf(err) != adapters.KindNotFound:
				a.config.Log.Error("kill all: a sandbox is left", "sandbox", sb.ID, "err", err)
				result.Failed = append(result.Failed, sb.ID)
			}
		})
	}
	kills.Wait()
	return result
}
