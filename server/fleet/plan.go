package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// maxMetadata bounds a sandbox's metadata in bytes: every list carries all of it.
const maxMetadata = 256 << 10

// A pool that does not say within resolveTime whether it has a template is left alone for resolvePause, so that it
// holds up the creates of one moment only.
const (
	resolveTime  = 2 * time.Second
	resolvePause = 30 * time.Second
)

// candidate is a pool that can serve a request, with what the sandbox would get there.
type candidate struct {
	pool   *pool
	choice placement.Choice
}

// plan is what is to be tried, in order, and the record of how it was decided. It belongs to one create.
type plan struct {
	order    []candidate
	decision placement.Decision
	// alone says that there is one pool only: nothing is gained by leaving it alone, and its own errors say most.
	alone bool
}

// Template finds a template by id or name, in the first pool that has it.
func (f *Fleet) Template(ctx context.Context, name string) (adapters.Template, error) {
	var first error
	for _, p := range f.pools.all() {
		bounded, cancel := context.WithTimeout(ctx, resolveTime)
		template, err := p.resolve(bounded, name)
		cancel()
		if err == nil {
			return template, nil
		}
		if first == nil {
			first = err
		}
	}
	return adapters.Template{}, first
}

// KnowsTemplate returns nil when a sandbox of the team could be made of the reference: a template, or a snapshot of the
// team's own.
func (f *Fleet) KnowsTemplate(ctx context.Context, teamID, reference string) error {
	_, err := f.store.Snapshots.Find(ctx, teamID, reference)
	if errors.Is(err, store.ErrNotFound) {
		_, err = f.Template(ctx, reference)
		return err
	}
	return storeError("", err)
}

// Plan returns the decision that a create would be carried out by, without creating anything. When no pool
// qualifies, it returns the refusal beside the decision.
func (f *Fleet) Plan(ctx context.Context, req placement.Request) (placement.Decision, error) {
	if err := f.check(req); err != nil {
		return placement.Decision{}, err
	}
	p, err := f.plan(ctx, req)
	if p == nil {
		return placement.Decision{}, err
	}
	return p.decision, err
}

// plan decides where a request may go, and in which order.
func (f *Fleet) plan(ctx context.Context, req placement.Request) (*plan, error) {
	began := time.Now()
	all, copied, err := f.sources(ctx, req)
	if err != nil {
		return nil, err
	}
	offers, failed := f.offers(ctx, req, all, copied)
	if err := f.countGroups(ctx, req, offers); err != nil {
		return nil, err
	}
	p := &plan{alone: len(all) == 1}
	ranked, err := p.decide(req, offers, *f.ranking.Load(), began)
	if err != nil {
		if adapters.KindOf(err) == adapters.KindNotFound && failed != nil {
			err = failed // it lists the templates that there are
		}
		return p, err
	}
	for _, choice := range ranked.Order {
		for _, one := range all {
			if one.name == choice.Pool {
				p.order = append(p.order, candidate{one, choice})
			}
		}
	}
	return p, nil
}

// decide matches and ranks, with the times of both.
func (p *plan) decide(req placement.Request, offers []placement.Offer, settings placement.Settings, began time.Time) (placement.Plan, error) {
	matched, err := placement.Match(req, offers, time.Now(), settings)
	p.decision = matched.Plan().Decision
	p.stage(placement.StageMatch, began)
	if err != nil {
		return placement.Plan{}, err
	}
	ranking, stages := time.Now(), p.decision.Stages
	ranked, err := matched.Rank()
	p.decision = ranked.Decision
	p.decision.Stages = stages
	p.stage(placement.StageRank, ranking)
	return ranked, err
}

// sources are the pools that may have the template, and the template where it is a snapshot: it is in its own pool only.
func (f *Fleet) sources(ctx context.Context, req placement.Request) ([]*pool, *adapters.Template, error) {
	snapshot, err := f.store.Snapshots.Find(ctx, req.TeamID, req.Template)
	if errors.Is(err, store.ErrNotFound) {
		return f.pools.all(), nil, nil
	}
	if err != nil {
		return nil, nil, storeError("", err)
	}
	p := f.pools.get(snapshot.Pool)
	if p == nil {
		return nil, nil, adapters.Errorf(adapters.KindUnavailable, "snapshot %s lies in pool %s, which is not configured any more: "+
			"configure the pool again, or create the sandbox from a template", req.Template, snapshot.Pool)
	}
	template, err := f.templateOf(snapshot)
	return []*pool{p}, &template, err
}

// offers asks every pool for its template of the name, or offers the copy, and for how it is doing. The error is the
// first pool's that has no such template.
func (f *Fleet) offers(ctx context.Context, req placement.Request, all []*pool, copied *adapters.Template) ([]placement.Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	offers, errs := make([]placement.Offer, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	for i, p := range all[1:] {
		asking.Go(func() { offers[i+1], errs[i+1] = f.offer(ctx, req, p, copied) })
	}
	offers[0], errs[0] = f.offer(ctx, req, all[0], copied)
	asking.Wait()
	for i, p := range all {
		if p.alone.Load() {
			offers[i].Live.Breaker = placement.BreakerClosed // it has nowhere to steer to
		}
	}
	for _, err := range errs {
		if err != nil {
			return offers, err
		}
	}
	return offers, nil
}

// offer is what one pool has for a request. A template that cannot be asked for keeps the pool out for now.
func (f *Fleet) offer(ctx context.Context, req placement.Request, p *pool, copied *adapters.Template) (placement.Offer, error) {
	at := time.Now()
	offer := placement.Offer{Pool: p.terms.Load().facts, Live: p.health.live(at)}
	if offer.Pool.Concurrency > 0 {
		sandboxes, err := f.store.Sandboxes.CountIn(ctx, p.name)
		if err != nil {
			offer.Live.Unhealthy = "its sandboxes cannot be counted"
		}
		offer.Live.Sandboxes = sandboxes
	}
	if copied != nil {
		offer.Template = copied
		return offer, nil
	}
	offer.Template = &adapters.Template{Name: req.Template} // one that is not asked for now is taken to be there
	if !p.alone.Load() && (offer.Live.Breaker == placement.BreakerOpen || offer.Live.RestUntil.After(at) || offer.Live.Unhealthy != "") {
		return offer, nil
	}
	template, err := p.resolve(ctx, req.Template)
	switch kind := adapters.KindOf(err); {
	case err == nil:
		offer.Template = &template
	case kind == adapters.KindNotFound:
		offer.Template = nil
		return offer, err
	default:
		offer.Live.Unhealthy = "its templates cannot be asked for: " + err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			offer.Live.Unhealthy = "it does not answer"
			if !p.alone.Load() {
				p.health.rest(at.Add(resolvePause), kind)
			}
		}
	}
	return offer, nil
}

// countGroups counts, for each pool, the team's sandboxes that carry the request's affinity or spread name.
func (f *Fleet) countGroups(ctx context.Context, req placement.Request, offers []placement.Offer) error {
	affinity, spread := req.Require.Affinity, req.Require.Spread
	if affinity == "" && spread == "" {
		return nil
	}
	records, err := f.store.Sandboxes.All(ctx)
	if err != nil {
		return storeError("", err)
	}
	for _, record := range records {
		for i := range offers {
			if record.TeamID != req.TeamID || record.Pool != offers[i].Pool.Name || record.State == store.StateKilling {
				continue
			}
			if affinity != "" && record.Affinity == affinity {
				offers[i].Live.Affine++
			}
			if spread != "" && record.Spread == spread {
				offers[i].Live.Spread++
			}
		}
	}
	return nil
}

// check refuses what no pool can make good.
func (f *Fleet) check(req placement.Request) error {
	switch {
	case req.TeamID == "":
		return adapters.Wrap(adapters.KindInternal, errors.New("a create without a team"), "the request has no team")
	case req.Timeout <= 0:
		return adapters.Errorf(adapters.KindInvalid, "timeout must be at least 1 second")
	case req.Timeout > f.cfg.LongestLife:
		return f.tooLong()
	case metadataSize(req.Metadata) > maxMetadata:
		return adapters.Errorf(adapters.KindInvalid, "the metadata is too large: all of it together may have %d KiB", maxMetadata>>10)
	}
	return nil
}

// metadataSize is the number of bytes of all keys and values together.
func metadataSize(metadata map[string]string) int {
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	return size
}

func (f *Fleet) tooLong() error {
	return adapters.Errorf(adapters.KindInvalid, "timeout may be at most %d seconds: that is how long a sandbox lives here",
		int(f.cfg.LongestLife/time.Second))
}
