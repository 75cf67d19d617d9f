// Package api serves the control plane: one file per operation, each the strict handler of openapi's
// generated server, between the checks in front and the fleet behind.
//
// A call passes, from outside in: request id and access log, recovery, CORS, limits (time, size), the
// router, and for a known operation guard: is it served, who calls, is the request as the document says.
package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/openapi/check"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
	"github.com/labstack/echo/v4"
)

// Fleet is what the control plane needs of the fleet. All of it is safe for concurrent use; errors are
// *adapters.Error. A sandbox of another team is KindNotFound, as one that does not exist.
type Fleet interface {
	// Create makes a sandbox and returns when its envd answers.
	Create(ctx context.Context, request placement.Request) (store.Sandbox, error)
	// Connect extends the life to at least the timeout from now, and resumes a paused sandbox.
	Connect(ctx context.Context, teamID, id string, wake placement.Wake) (sb store.Sandbox, resumed bool, err error)
	// Pause stops a running sandbox and keeps it.
	Pause(ctx context.Context, teamID, id string, how placement.Pause) error
	// SetNetwork replaces what a running sandbox may reach.
	SetNetwork(ctx context.Context, teamID, id string, network store.Network, rules []adapters.HeaderRule) error
	// Snapshot copies a running sandbox, which runs on. name is name:tag, or empty.
	Snapshot(ctx context.Context, teamID, id, name string, memory *bool) (store.Snapshot, error)
	// Snapshots returns one page of snapshots.
	Snapshots(ctx context.Context, query store.SnapshotQuery) (store.SnapshotPage, error)
	// RemoveSnapshot removes a snapshot by id or name.
	RemoveSnapshot(ctx context.Context, teamID, reference string) error
	// Sandbox returns one running or paused sandbox.
	Sandbox(ctx context.Context, teamID, id string) (store.Sandbox, error)
	// List returns one page of sandboxes.
	List(ctx context.Context, query store.SandboxQuery) (store.SandboxPage, error)
	// Kill ends a sandbox and returns when nothing of it is left.
	Kill(ctx context.Context, teamID, id string) error
	// SetTimeout sets the end to d from now, clamped to the longest life; 0 ends the sandbox at once.
	SetTimeout(ctx context.Context, teamID, id string, d time.Duration) error
	// Refresh extends the life to at least d from now.
	Refresh(ctx context.Context, teamID, id string, d time.Duration) error
	// Metrics returns kept samples, oldest first. A zero time leaves that end of the window open.
	Metrics(ctx context.Context, teamID, id string, from, to time.Time) ([]store.Metric, error)
	// LatestMetrics returns the newest sample of each sandbox that is there.
	LatestMetrics(ctx context.Context, teamID string, ids []string) (map[string]store.Metric, error)
	// Logs returns log entries. The limit is 1 to 1,000.
	Logs(ctx context.Context, teamID, id string, query store.LogQuery) ([]store.LogEntry, error)
	// Tokens returns the two tokens of a sandbox; empty where it has none.
	Tokens(sb store.Sandbox) (envd, traffic string)
	// Template finds a template by id or name, or KindNotFound.
	Template(ctx context.Context, name string) (adapters.Template, error)
	// KnowsTemplate returns nil for a template, and for a snapshot of the team; else KindNotFound.
	KnowsTemplate(ctx context.Context, teamID, reference string) error
	// MaxLife is the longest life of a sandbox.
	MaxLife() time.Duration
}

// Config is what the control plane is built from.
type Config struct {
	Fleet Fleet
	Keys  auth.Keys
	// Domain is where sandbox hosts are, with a port if need be; empty: clients use their own.
	Domain string
	// Rules are asked for at every create, so that they can change while it serves; nil: there are none.
	Rules func() *translate.Rules
	// CallsPerSecond bounds the calls of each API key; 0: no bound.
	CallsPerSecond int
	// Log takes one line per call and the causes of failures; nil: none.
	Log *slog.Logger
}

// server holds what the middleware needs.
type server struct {
	document *check.Document
	fleet    Fleet
	auth     *auth.Authenticator
	callers  *callers
	log      *slog.Logger
}

// operations implements the generated strict interface. The embedded one is nil: guard lets only operations
// through that have a method here.
type operations struct {
	openapi.StrictServerInterface
	fleet  Fleet
	auth   *auth.Authenticator
	domain string
	rules  func() *translate.Rules
}

// New returns the control plane. It fails only when the OpenAPI document cannot be read, which is a fault of
// the build.
func New(config Config) (http.Handler, error) {
	document, err := check.Load(openapi.Document())
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	s := &server{
		document: document, fleet: config.Fleet, auth: auth.New(config.Keys),
		callers: newCallers(config.CallsPerSecond, time.Now), log: config.Log,
	}
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e := echo.New()
	e.Binder = binder{}
	e.HTTPErrorHandler = s.fail
	e.Use(s.observe, s.recovered, cors, limited(maxTime), s.guard)
	handlers := &operations{fleet: config.Fleet, auth: s.auth, domain: config.Domain, rules: config.Rules}
	if handlers.rules == nil {
		none := &translate.Rules{}
		handlers.rules = func() *translate.Rules { return none }
	}
	openapi.RegisterHandlers(e, openapi.NewStrictHandler(handlers, nil))
	return e, nil
}

// team returns the calling team's id.
func team(ctx context.Context) string { return auth.From(ctx).Team.ID }

// limits returns what creates and connects are held against.
func (o *operations) limits() translate.Limits {
	return translate.Limits{MaxLife: o.fleet.MaxLife()}
}

// access returns what a client needs to reach a sandbox.
func (o *operations) access(sb store.Sandbox) translate.Access {
	envd, traffic := o.fleet.Tokens(sb)
	return translate.Access{EnvdToken: envd, TrafficToken: traffic, Domain: o.domain}
}
