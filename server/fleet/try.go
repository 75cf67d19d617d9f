package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// try makes one attempt, to which the intent is bound, and says what became of it. An error other than errUndecided
// means that nothing of the attempt is left.
func (f *Fleet) try(ctx context.Context, m *making, sb store.Sandbox, req placement.Request, c candidate) (placement.Attempt, error) {
	attempt := placement.Attempt{Pool: c.pool.name, Provider: c.pool.terms.Load().facts.Provider, ID: sb.Attempt, Began: now()}
	failure := f.tryAdmitted(ctx, m, sb, req, c, &attempt)
	attempt.Ended = now()
	if failure == nil {
		return attempt, nil
	}
	attempt.Kind, attempt.Message, attempt.RetryAfter = adapters.KindOf(failure), failure.Error(), placement.Milliseconds(retryAfter(failure))
	attempt.Next = placement.After(attempt.Kind).Step
	if errors.Is(failure, errNotTried) {
		attempt.Next = placement.Next
	}
	f.log.Info("create: an attempt failed", "sandbox", sb.ID, "pool", attempt.Pool, "kind", attempt.Kind, "err", failure, "next", attempt.Next)
	return attempt, failure
}

func (f *Fleet) tryAdmitted(ctx context.Context, m *making, sb store.Sandbox, req placement.Request, c candidate, attempt *placement.Attempt) error {
	done, err := c.pool.admit()
	if err != nil {
		return err
	}
	err = f.withinConcurrency(ctx, c.pool)
	if err == nil {
		err = f.obtain(ctx, m, f.spec(sb, req, c), c.pool)
	}
	if err == nil {
		err = f.verify(ctx, sb, c, attempt)
	}
	done(err)
	return err
}

// withinConcurrency refuses when the pool has more sandboxes than it may have. The intent is counted too, and it was
// written before: so creates at the same time never exceed the bound together.
func (f *Fleet) withinConcurrency(ctx context.Context, p *pool) error {
	most := p.terms.Load().facts.Concurrency
	if most == 0 {
		return nil
	}
	bound, err := f.store.Sandboxes.CountIn(ctx, p.name)
	if err != nil {
		return storeError("", err)
	}
	if bound > most {
		return notTried(adapters.KindCapacity, "it has as many sandboxes as its configuration allows")
	}
	return nil
}

// verify compares what the box is seen to be with what was required, and destroys one that falls short. A box that
// cannot be destroyed is left to Reconcile: errUndecided.
func (f *Fleet) verify(ctx context.Context, sb store.Sandbox, c candidate, attempt *placement.Attempt) error {
	if !checked(c.choice.Need) {
		return nil
	}
	measured, err := f.measure(ctx, c.pool, sb)
	if err != nil {
		f.log.Warn("create: a new box could not be measured", "pool", c.pool.name, "box", sb.BoxID, "err", err)
	}
	attempt.Seen = &measured // what was not measured says nothing either way
	if attempt.Unmet = c.choice.Shortfall(measured); len(attempt.Unmet) == 0 {
		return nil
	}
	if err := f.destroy(ctx, sb); err != nil {
		f.endHere(ctx, sb.ID, "failed its check", whenAny)
		return &adapters.Error{Kind: adapters.KindUnavailable, Err: errors.Join(errUndecided, err),
			Message: "the sandbox falls short of what was required and is being removed: try again"}
	}
	return &adapters.Error{Kind: placement.FailedPostCheck, Message: "the sandbox fell short of what was required and was removed"}
}

// checked reports whether anything is required that can be seen from inside.
func checked(need *placement.Requirements) bool {
	return need != nil && (need.CPU > 0 || need.MemoryMB > 0 || need.DiskMB > 0 || placement.Provable(need.Isolation))
}

// remember writes the decision of a create. That one is missing is no reason to fail the create.
func (f *Fleet) remember(ctx context.Context, id string, decision placement.Decision) {
	text, err := json.Marshal(decision)
	if err == nil {
		err = f.store.Decisions.Put(ctx, id, text)
	}
	if err != nil {
		f.log.Error("create: its decision could not be written", "sandbox", id, "err", err)
	}
}

// Decision returns how it was decided where a sandbox goes, for DecisionLife after its create.
func (f *Fleet) Decision(ctx context.Context, id string) (placement.Decision, error) {
	text, err := f.store.Decisions.Get(ctx, id)
	if err != nil {
		return placement.Decision{}, storeError(id, err)
	}
	var decision placement.Decision
	return decision, json.Unmarshal(text, &decision)
}

// retryAfter returns how long the provider asks to be left alone; 0: it does not say.
func retryAfter(err error) time.Duration {
	var typed *adapters.Error
	if errors.As(err, &typed) {
		return typed.RetryAfter
	}
	return 0
}
