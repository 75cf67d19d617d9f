package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// lookUp returns nil when our box is there and its envd answers, so that it can be adopted. Where a provider may show
// a box only some time after its create, it is waited for.
func (f *Fleet) lookUp(ctx context.Context, p *pool, boxID, attempt string) error {
	bounded, cancel := context.WithTimeout(ctx, f.cfg.Timing.Settle)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		box, err := p.Get(bounded, boxID)
		switch {
		case err != nil && adapters.KindOf(err) == adapters.KindNotFound && p.seenAtOnce:
			return err
		case err == nil && (box.Attempt != attempt || !box.Alive):
			return fmt.Errorf("box %s is another attempt's, or has ended", boxID)
		case err == nil:
			if err = f.answers(bounded, p, boxID); err == nil {
				return nil
			}
		}
		if !sleep(bounded, wait) {
			return errors.Join(bounded.Err(), err)
		}
	}
}

// absent makes sure that nothing of our attempt is left: nil, or errUndecided. A box of this name that
// another attempt made is not ours and stays. Where a provider may show a box only some time after its create, that
// there is none must hold for the whole of Timing.Settle.
func (f *Fleet) absent(ctx context.Context, p *pool, boxID, attempt string) error {
	settle := f.cfg.Timing.Settle
	bounded, cancel := context.WithTimeout(ctx, 2*settle)
	defer cancel()
	end, held := time.Now().Add(settle), true
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		late := !time.Now().Before(end)
		err := clearAway(bounded, p, boxID, attempt)
		missing := err != nil && adapters.KindOf(err) == adapters.KindNotFound
		held = held && missing
		if err == nil || missing && p.seenAtOnce || held && late {
			return nil
		}
		if late || !sleep(bounded, min(wait, max(time.Until(end), time.Millisecond))) {
			return undecided(p, err)
		}
	}
}

// clearAway destroys a box if it is our attempt's. KindNotFound: there is none.
func clearAway(ctx context.Context, p *pool, boxID, attempt string) error {
	box, err := p.Get(ctx, boxID)
	if err == nil && box.Attempt == attempt {
		err = p.Destroy(ctx, boxID)
	}
	return err
}

func undecided(p *pool, cause error) error {
	return &adapters.Error{Kind: adapters.KindUnknownOutcome, Code: "idempotency_outcome_unknown",
		Err: errors.Join(errUndecided, cause),
		Message: "pool " + p.name + " does not say whether the sandbox was made. It is looked up again, and removed " +
			"unless the create had an Idempotency-Key: repeat the create with the same key, or create another"}
}

// answers asks the box's envd for its health.
func (f *Fleet) answers(ctx context.Context, p *pool, boxID string) error {
	response, err := f.ask(ctx, p, boxID, "/health")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// ask sends one request of the facade's own to the envd of a box. The answer's status is one of success; its body is
// the caller's to close.
func (f *Fleet) ask(ctx context.Context, p *pool, boxID, route string) (*http.Response, error) {
	endpoint, err := p.Reach(ctx, boxID)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if endpoint.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return endpoint.Dial(ctx) }
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.URL.JoinPath(route).String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range endpoint.Header {
		request.Header[name] = values
	}
	if p.native == nil { // another server has no business with our secrets
		request.Header.Set(envd.HeaderTransport, f.cfg.Secrets.Transport(boxID))
		if envd.Internal(route) {
			request.Header.Set(envd.HeaderControl, f.cfg.Secrets.Control(boxID))
		}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, errors.Join(fmt.Errorf("envd answers %s", response.Status), response.Body.Close())
	}
	return response, nil
}

// sleep waits, and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
