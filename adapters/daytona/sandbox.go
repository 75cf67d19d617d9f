package daytona

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// The states that matter here. Others, also new ones, are on the way to one of them.
const (
	stateStarted     = "started"
	stateStopped     = "stopped"
	statePaused      = "paused"
	stateArchived    = "archived"
	stateDestroying  = "destroying"
	stateDestroyed   = "destroyed"
	stateError       = "error"
	stateBuildFailed = "build_failed"
)

// The labels by which our boxes are known.
const (
	labelID         = "isthmus-id"
	labelAttempt    = "isthmus-attempt"
	labelDeployment = "isthmus-deployment"
)

// sandbox is what is read of Daytona's.
type sandbox struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels"`
	State        string            `json:"state"`
	DesiredState string            `json:"desiredState"`
	ErrorReason  string            `json:"errorReason"`
	Recoverable  bool              `json:"recoverable"`
	// AutoDeleteInterval is in minutes after a stop, 0 at once, below that never; nil: the server does not say.
	AutoDeleteInterval *int      `json:"autoDeleteInterval"`
	CreatedAt          time.Time `json:"createdAt"`
	SandboxClass       string    `json:"sandboxClass"`
	Snapshot           string    `json:"snapshot"`
	ToolboxProxyURL    string    `json:"toolboxProxyUrl"`
	CPU                int       `json:"cpu"`
	Memory             int       `json:"memory"`
	Disk               int       `json:"disk"`
}

// broken reports whether the sandbox came to an error, and does not run.
func (s sandbox) broken() bool { return s.State == stateError || s.State == stateBuildFailed }

// recovers reports whether it is one that Daytona keeps, with its files, until it is told to recover it.
func (s sandbox) recovers() bool { return s.State == stateError && s.Recoverable }

// failed reports whether the sandbox will never run.
func (s sandbox) failed() bool { return s.broken() && !s.recovers() }

// ephemeral reports whether a stop deletes the sandbox.
func (s sandbox) ephemeral() bool { return s.AutoDeleteInterval != nil && *s.AutoDeleteInterval == 0 }

// leaving reports whether it is on its way out, whatever its state still says.
func (s sandbox) leaving() bool {
	return s.State == stateDestroying || s.State == stateDestroyed || s.DesiredState == stateDestroyed
}

// at reports whether it has come to a state and is meant to be there.
func (s sandbox) at(state string) bool {
	return s.State == state && (s.DesiredState == "" || s.DesiredState == state)
}

// box is the sandbox as the contract knows it.
func (s sandbox) box() adapters.Box {
	resting := s.State == stateStopped || s.State == statePaused || s.State == stateArchived || s.recovers()
	return adapters.Box{
		ID: s.Labels[labelID], Attempt: s.Labels[labelAttempt], Deployment: s.Labels[labelDeployment], SandboxID: s.Labels[labelID],
		CreatedAt: s.CreatedAt, Alive: !s.failed() && !s.leaving(), Paused: resting && !s.leaving(),
	}
}

// sandboxPath is the path of a sandbox, by its id or name.
func sandboxPath(idOrName string, more ...string) string {
	return "/sandbox/" + strings.Join(append([]string{url.PathEscape(idOrName)}, more...), "/")
}

// look finds the sandbox of a box: by its own id, by name, then by label. One that is being destroyed is found too.
func (p *Provider) look(ctx context.Context, boxID string) (sandbox, error) {
	if !boxIDs.MatchString(boxID) {
		return sandbox{}, gone(boxID)
	}
	names := []string{boxID}
	if k, there := p.recall(boxID); there && k.sandboxID != "" {
		names = []string{k.sandboxID, boxID}
	}
	for _, name := range names {
		found, err := p.read(ctx, name)
		if err == nil && found.Labels[labelID] == boxID {
			p.learn(boxID, found)
			return found, nil
		}
		if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
			return sandbox{}, err
		}
	}
	all, err := p.listed(ctx, map[string]string{labelID: boxID})
	if err != nil {
		return sandbox{}, err
	}
	if len(all) == 0 {
		p.forget(boxID)
		return sandbox{}, gone(boxID)
	}
	// The one that stays before those that are leaving.
	slices.SortStableFunc(all, func(a, b sandbox) int {
		if a.leaving() == b.leaving() {
			return 0
		} else if a.leaving() {
			return 1
		}
		return -1
	})
	p.learn(boxID, all[0])
	return all[0], nil
}

// present is look for a box that is not on its way out.
func (p *Provider) present(ctx context.Context, boxID string) (sandbox, error) {
	found, err := p.look(ctx, boxID)
	if err == nil && found.leaving() {
		return sandbox{}, gone(boxID)
	}
	return found, err
}

// read asks for one sandbox.
func (p *Provider) read(ctx context.Context, idOrName string) (sandbox, error) {
	var found sandbox
	err := p.api.send(ctx, request{method: http.MethodGet, path: sandboxPath(idOrName), into: &found})
	if err == nil {
		err = found.sound()
	}
	return found, err
}

// learn remembers where a box is.
func (p *Provider) learn(boxID string, found sandbox) {
	p.remember(boxID, func(k *known) {
		k.sandboxID, k.created = found.ID, found.CreatedAt
		if toolbox, err := url.Parse(found.ToolboxProxyURL); err == nil && toolbox.Host != "" && p.api.trusts(toolbox) {
			k.toolbox = toolbox.JoinPath(found.ID)
		}
	})
}

// trusts reports whether the key may be sent to an address that the API names: never in clear when the API itself is
// reached by TLS.
func (a *api) trusts(other *url.URL) bool {
	return other.User == nil && (other.Scheme == "https" || other.Scheme == "http" && a.base.Scheme == "http")
}

// until looks at a sandbox until it is at a state and means it. KindNotFound when it is gone.
func (p *Provider) until(ctx context.Context, sandboxID, state string) (sandbox, error) {
	var last looked
	for pause := time.Duration(0); ; {
		found, err := p.read(ctx, sandboxID)
		last.note(ctx, found.State, err)
		switch {
		case err != nil && adapters.KindOf(err) != adapters.KindUnavailable && adapters.KindOf(err) != adapters.KindRateLimited:
			return sandbox{}, err
		case err == nil && found.at(state):
			return found, nil
		case err == nil && found.broken():
			return found, endedAs(found)
		case err == nil && found.leaving():
			return sandbox{}, gone(found.Labels[labelID])
		}
		if stopped := wait(ctx, &pause); stopped != nil {
			return sandbox{}, last.givenUp(stopped, state, states())
		}
	}
}
