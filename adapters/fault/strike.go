package fault

import (
	"context"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// through makes one call under the plan.
func through[V any](ctx context.Context, p *Provider, call Call, do func() (V, error)) (V, error) {
	return struck(ctx, p.dice.throw(call), do)
}

// only is through for a call that has nothing but an error.
func only(ctx context.Context, p *Provider, call Call, do func() error) error {
	_, err := through(ctx, p, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// struck makes one call that a rule strikes.
func struck[V any](ctx context.Context, rule Rule, do func() (V, error)) (V, error) {
	var none V
	if err := before(ctx, rule); err != nil {
		return none, err
	}
	got, err := do()
	if rule.Fault == LostAnswer && err == nil {
		return none, adapters.Errorf(adapters.KindUnknownOutcome, "the answer was lost: it may or may not have happened (an injected fault)")
	}
	return got, err
}

// before fails what never comes to the provider.
func before(ctx context.Context, rule Rule) error {
	switch rule.Fault {
	case Capacity:
		return adapters.Errorf(adapters.KindCapacity, "there is no room at the moment (an injected fault)")
	case RateLimited:
		return &adapters.Error{Kind: adapters.KindRateLimited, RetryAfter: rule.RetryAfter, Message: "too many calls (an injected fault)"}
	case Outage:
		return adapters.Errorf(adapters.KindUnavailable, "the provider cannot be reached (an injected fault)")
	case Hang:
		<-ctx.Done()
		return ctx.Err()
	case Slow:
		timer := time.NewTimer(rule.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
