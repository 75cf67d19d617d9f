package vercel

import (
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// The tags by which our sandboxes are known. The vendor lists by one of them at a time, and keeps five.
const (
	tagDeployment = "isthmus-deployment"
	tagAttempt    = "isthmus-attempt"
	tagSnapshot   = "isthmus-snapshot"
	tagBaked      = "isthmus-baked"
)

// The states of a sandbox that mean something here. An unknown one is taken for life: what lives must not be lost.
const (
	statusPending = "pending"
	statusRunning = "running"
	statusStopped = "stopped"
	statusFailed  = "failed"
	statusAborted = "aborted"
)

// sandbox, session and route are what is read of the vendor's answers. Times are milliseconds since 1970.
type sandbox struct {
	Name       string            `json:"name"`
	Persistent bool              `json:"persistent"`
	Status     string            `json:"status"`
	CreatedAt  int64             `json:"createdAt"`
	UpdatedAt  int64             `json:"updatedAt"`
	Session    string            `json:"currentSessionId"`
	Snapshot   string            `json:"currentSnapshotId"`
	Tags       map[string]string `json:"tags"`
}

type session struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	StartedAt int64  `json:"startedAt"`
	CreatedAt int64  `json:"createdAt"`
	Timeout   int64  `json:"timeout"`
}

type route struct {
	URL  string `json:"url"`
	Port int    `json:"port"`
}

// view is the answer about one sandbox.
type view struct {
	Sandbox sandbox `json:"sandbox"`
	Session session `json:"session"`
	Routes  []route `json:"routes"`
}

// end is when the vendor ends the session; zero: not known.
func (s session) end() time.Time {
	from := s.StartedAt
	if from == 0 {
		from = s.CreatedAt
	}
	if from == 0 || s.Timeout == 0 {
		return time.Time{}
	}
	return time.UnixMilli(from + s.Timeout)
}

func (s sandbox) ours() bool { return s.Tags[tagDeployment] != "" && boxIDs.MatchString(s.Name) }

func (s sandbox) over() bool {
	return s.Status == statusFailed || s.Status == statusAborted || s.Status == statusStopped && !s.Persistent
}

func (s sandbox) paused() bool { return s.Status == statusStopped && s.Persistent }

func (s sandbox) box() adapters.Box {
	return adapters.Box{
		ID: s.Name, Attempt: s.Tags[tagAttempt], Deployment: s.Tags[tagDeployment], SandboxID: s.Name,
		CreatedAt: time.UnixMilli(s.CreatedAt).UTC(), Alive: !s.over(), Paused: s.paused(),
	}
}
