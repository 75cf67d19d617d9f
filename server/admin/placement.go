package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// Placement is what administration needs of where sandboxes go.
type Placement interface {
	// Pools returns the pools in their order, as of now.
	Pools() []fleet.PoolState
	// Decision returns how it was decided where a sandbox goes.
	Decision(ctx context.Context, sandboxID string) (placement.Decision, error)
	// Plan decides for a create, without creating.
	Plan(ctx context.Context, request placement.Request, caller translate.Caller) (placement.Decision, error)
	// LoadAgain reads the configuration again and puts its pools and rules in place. It returns the changed fields that
	// wait for a new start.
	LoadAgain(ctx context.Context) ([]string, error)
}

// Reloaded says what of a configuration that was loaded again is not in place yet.
type Reloaded struct {
	// NeedsStart are paths of fields that differ from what Isthmus was started with and that no reload changes.
	NeedsStart []string `json:"needsStart"`
}

// NewPlan asks what would become of a create.
type NewPlan struct {
	// Template is base by default, Team any name.
	Template string            `json:"template,omitempty"`
	Team     string            `json:"team,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Require is what the header X-Isthmus-Require would hold, Key the id or name of the API key.
	Require string `json:"require,omitempty"`
	Key     string `json:"key,omitempty"`
	// Timeout is the time to live in seconds; 0: 300.
	Timeout int `json:"timeout,omitempty"`
}

// Planned is the decision, and why nothing would be made.
type Planned struct {
	Decision placement.Decision `json:"decision"`
	Refusal  string             `json:"refusal,omitempty"`
}

func (a *Admin) showPlacement(w http.ResponseWriter, r *http.Request) {
	decision, err := a.config.Placement.Decision(r.Context(), r.PathValue("id"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, decision)
}

func (a *Admin) listPools(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, a.config.Placement.Pools())
}

func (a *Admin) reload(w http.ResponseWriter, r *http.Request) {
	waiting, err := a.config.Placement.LoadAgain(r.Context())
	if err != nil {
		refuse(w, http.StatusConflict, err.Error())
		return
	}
	answer(w, http.StatusOK, Reloaded{append([]string{}, waiting...)})
}

func (a *Admin) plan(w http.ResponseWriter, r *http.Request) {
	ask := NewPlan{Template: "base", Team: "plan", Timeout: 300}
	if !read(w, r, &ask) {
		return
	}
	key, err := a.findKey(r.Context(), ask.Key)
	if errors.Is(err, store.ErrNotFound) {
		refuse(w, http.StatusNotFound, "there is no key "+ask.Key+": `isthmus keys list` shows those that exist")
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	decision, err := a.config.Placement.Plan(r.Context(), placement.Request{
		TeamID: ask.Team, Template: ask.Template, Timeout: time.Duration(ask.Timeout) * time.Second, Metadata: ask.Metadata,
	}, translate.Caller{KeyID: key.ID, KeyName: key.Name, Require: &ask.Require})
	var refusal *placement.Refusal
	switch {
	case errors.As(err, &refusal):
		answer(w, http.StatusOK, Planned{decision, refusal.Error()})
	case err != nil:
		a.fail(w, r, err)
	default:
		answer(w, http.StatusOK, Planned{Decision: decision})
	}
}
