// Package placement holds the neutral request for a sandbox, and the pure functions that choose where it
// goes.
package placement

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// Request is a create as the fleet sees it: no wire type, every default filled in.
type Request struct {
	TeamID string
	// Template is the name or id as the client gave it.
	Template string
	// Timeout is the time to live, more than 0 and at most the fleet's longest life.
	Timeout  time.Duration
	Metadata map[string]string
	EnvVars  map[string]string
	// Secure asks for an access token on envd.
	Secure  bool
	Network store.Network
	// Rules add headers to requests from inside, for the hosts that Network.RuleHosts names. They are secrets.
	Rules []adapters.HeaderRule
	// AutoPause pauses the sandbox at its timeout, AutoPauseLevel says what must then be kept; empty: the most that
	// the place can. AutoResume lets traffic wake it, which needs a place that keeps memory.
	AutoPause      bool
	AutoPauseLevel adapters.Level
	AutoResume     bool
	// Require is what was asked of the place, all layers merged. Source is the kind of the template; empty:
	// portable.
	Require Requirements
	Source  string
	// IdempotencyKey makes a repeated create return the first one's sandbox; empty: none. Fingerprint is
	// the hash of the request body that the key belongs to.
	IdempotencyKey string
	Fingerprint    string
	// Allowed is asked before every attempt but the first whether the caller may still have what is asked for; an error
	// ends the create. nil: it is not asked.
	Allowed func(context.Context) error
}

// Pause is what a pause asks for.
type Pause struct {
	// Memory says what must be kept: true, all of it; false, the files are enough; nil, the most that the place can.
	Memory *bool
	// Healthy refuses to pause a sandbox that does not answer.
	Healthy bool
}

// Wake is what a connect or a resume asks for.
type Wake struct {
	// Timeout is the time to live from now, at least.
	Timeout time.Duration
	// Memory says whether a paused sandbox must go on with its memory; nil: with whatever was kept.
	Memory *bool
	// AutoPause says what a paused sandbox is to do at its next timeout; nil: as before.
	AutoPause *bool
}
