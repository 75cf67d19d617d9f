package fleet

import (
	"context"
	"errors"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// Create makes a sandbox and returns when its envd answers.
//
// The work does not end with the caller. When the caller is gone before the answer, a sandbox with an
// idempotency key is completed and listed, because the caller can come back for it with the key; one
// without is destroyed, because nobody knows its id. A repeated key returns what it made first, also while
// that is still being made and after a restart.
func (f *Fleet) Create(ctx context.Context, req placement.Request) (store.Sandbox, error) {
	if err := f.check(req); err != nil {
		return store.Sandbox{}, err
	}
	if f.isStopping() {
		return store.Sandbox{}, stopping()
	}
	planned, err := f.plan(ctx, req)
	if err != nil {
		return store.Sandbox{}, err
	}
	const tries = 3 // a key that was freed between two looks is tried again
	for range tries {
		sandbox, again, err := f.createOnce(ctx, req, planned)
		if !again {
			return sandbox, err
		}
	}
	return store.Sandbox{}, endedKey()
}

// createOnce begins a create or joins the one that its key began. again asks for another go.
func (f *Fleet) createOnce(ctx context.Context, req placement.Request, planned *plan) (_ store.Sandbox, again bool, _ error) {
	intent := f.intent(newID(), req, planned.order[0])
	// Known before it is written, so that neither Reconcile nor a repeat takes it for a crash's remains.
	m := f.makings.begin(intent.ID, req.IdempotencyKey != "")
	if f.isStopping() {
		f.makings.finish(m, store.Sandbox{}, stopping())
		return store.Sandbox{}, false, stopping()
	}
	earlier, err := f.store.Sandboxes.Begin(ctx, store.Intent{
		Sandbox: intent, Key: req.IdempotencyKey, Fingerprint: req.Fingerprint, TeamLimit: f.cfg.TeamConcurrency,
	})
	if err != nil || earlier != nil {
		f.makings.finish(m, store.Sandbox{}, err)
	}
	switch {
	case errors.Is(err, store.ErrTeamLimit):
		return store.Sandbox{}, false, f.teamIsFull()
	case err != nil:
		return store.Sandbox{}, false, storeError(intent.ID, err)
	case earlier != nil:
		return f.repeat(ctx, req, *earlier)
	}
	f.stats.begun()
	started := f.tasks.start(func(work context.Context) { f.run(work, m, intent, req, planned) })
	if !started {
		f.abandon(ctx, intent)
		f.makings.finish(m, store.Sandbox{}, stopping())
	}
	sandbox, err := m.wait(ctx)
	return sandbox, false, err
}

// run makes the sandbox and hands it over, or ends it when nobody is there to take it.
func (f *Fleet) run(work context.Context, m *making, intent store.Sandbox, req placement.Request, planned *plan) {
	sandbox, err := f.place(work, m, intent, req, planned)
	f.stats.created(intent.CreatedAt, err)
	if err != nil {
		f.log.Warn("create failed", "sandbox", intent.ID, "kind", adapters.KindOf(err), "err", err, "cause", errors.Unwrap(err))
	}
	f.makings.finish(m, sandbox, err)
	if err == nil && !m.delivered() {
		f.log.Info("create: the caller is gone, ending the sandbox", "sandbox", sandbox.ID)
		f.endHere(work, sandbox.ID, "abandoned", whenRunning)
	}
}

// repeat answers a create whose key was used before.
func (f *Fleet) repeat(ctx context.Context, req placement.Request, earlier store.CreateKey) (_ store.Sandbox, again bool, _ error) {
	if earlier.Fingerprint != req.Fingerprint {
		return store.Sandbox{}, false, &adapters.Error{Kind: adapters.KindPrecondition, Code: "idempotency_request_mismatch",
			Message: "this Idempotency-Key was used with another request body: use a new key"}
	}
	if m := f.makings.get(earlier.SandboxID); m != nil {
		sandbox, err := m.wait(ctx)
		if adapters.KindOf(err) == adapters.KindNotFound {
			return store.Sandbox{}, true, nil // what a crash had left made nothing, and the key is free
		}
		return sandbox, false, err
	}
	sandbox, err := f.store.Sandboxes.Get(ctx, earlier.SandboxID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Sandbox{}, true, nil
	case err != nil:
		return store.Sandbox{}, false, storeError(earlier.SandboxID, err)
	case sandbox.State == store.StateCreating:
		return f.resumeMaking(ctx, sandbox)
	case sandbox.State == store.StateKilling:
		return store.Sandbox{}, false, endedKey()
	}
	return sandbox, false, nil
}

// resumeMaking finishes a create that a crash, or an outcome that stayed unknown, left half done.
func (f *Fleet) resumeMaking(ctx context.Context, sandbox store.Sandbox) (_ store.Sandbox, again bool, _ error) {
	m := f.finishLater(sandbox)
	if m == nil {
		return store.Sandbox{}, false, stopping()
	}
	made, err := m.wait(ctx)
	if adapters.KindOf(err) == adapters.KindNotFound {
		return store.Sandbox{}, true, nil // it had made nothing, and the key is free
	}
	return made, false, err
}

func (f *Fleet) teamIsFull() error {
	return adapters.Errorf(adapters.KindTeamLimit,
		"the team has %d sandboxes, which is as many as it may have: kill one, or wait until one times out", f.cfg.TeamConcurrency)
}

func endedKey() error {
	return adapters.Errorf(adapters.KindPrecondition, "the sandbox that this Idempotency-Key made has ended: use a new key")
}
