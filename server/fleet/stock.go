package fleet

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// stockLife is how long a box waits in stock while no facade moves its end: those that a killed facade left are
// gone after it.
const stockLife = 10 * time.Minute

// stock is what a pool keeps ready: boxes that were made ahead of the creates that ask for nothing special. They
// have no records. That they are there, and what they were made for, is in the provider's list.
type stock struct {
	adapters.Stocker
	// creates counts the creates in progress. They come first.
	creates atomic.Int64
	// wake tells that something may be missing.
	wake chan struct{}
	// changing is held while a box is put into stock, or taken out of it other than by a claim.
	changing chan struct{}
	// extended is when the ends of all boxes in stock were last moved; of the fill loop.
	extended time.Time

	mu sync.Mutex
	// keep is how many boxes of a template, by its name, there should be.
	keep map[string]int
	// wanted and ready are how many boxes of a fit there should be, and are as far as this process knows: a create
	// with none ready does not ask for one.
	wanted, ready  map[string]int
	claims, misses int64
}

// newStock returns the stock of a provider that can have one; else nil.
func newStock(powers adapters.Powers, keep map[string]int) *stock {
	if powers.Stocker == nil || powers.Extender == nil {
		return nil
	}
	return &stock{Stocker: powers.Stocker, keep: keep, wake: make(chan struct{}, 1), changing: make(chan struct{}, 1)}
}

// stockedSpec is what a box is made of that serves any create of a template with the default network.
func (f *Fleet) stockedSpec(template adapters.Template) adapters.Spec {
	id := newID()
	spec := adapters.Spec{
		BoxID: id, Deployment: f.cfg.Secrets.Deployment(), Template: template, Resources: template.Resources,
		Network: adapters.Network{Internet: true},
		Envd: envd.Config{
			TemplateID: template.ID, Transport: f.cfg.Secrets.Transport(id), Control: f.cfg.Secrets.Control(id),
			Deadline: now().Add(stockLife), MemoryBytes: int64(template.Resources.MemoryMB) << 20,
		},
	}
	spec.Attempt = fit(spec)
	return spec
}

// fit names what a box can serve. It is the attempt of a box in stock, because that is what every provider stores
// with a box and lists: after a restart it tells what still serves.
func fit(spec adapters.Spec) string {
	text, err := json.Marshal([]any{spec.Template.ID, spec.Template.Version, spec.Resources, spec.Network})
	if err != nil {
		return "" // nothing is made ahead for a spec that cannot be written down
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, text).String()
}

// begin counts a create, during which nothing is put into stock, until the function that it returns is called.
func (s *stock) begin() (end func()) {
	s.creates.Add(1)
	return func() {
		if s.creates.Add(-1) == 0 {
			s.nudge()
		}
	}
}

// nudge wakes the loop that fills the stock.
func (s *stock) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it is told already
	}
}

// change waits until nobody else changes the stock.
func (s *stock) change(ctx context.Context) (done func(), _ error) {
	select {
	case s.changing <- struct{}{}:
		return func() { <-s.changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// know takes over what was seen in the provider's list.
func (s *stock) know(wanted, ready map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.ready = wanted, ready
}

// added counts one more box of a fit.
func (s *stock) added(fit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[fit]++
}

// take reserves a box of a fit for one create. Where there should be one but is none, that is a miss.
func (s *stock) take(fit string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready[fit] > 0 {
		s.ready[fit]--
		return true
	}
	if s.wanted[fit] > 0 {
		s.misses++
	}
	return false
}

// took counts how a claim ended.
func (s *stock) took(claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if claimed {
		s.claims++
	} else {
		s.misses++
	}
}

// none has nothing made ahead any more.
func (s *stock) none() { s.want(nil) }

// want changes how many boxes of which templates there should be.
func (s *stock) want(keep map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = keep
}

// kept returns how many boxes of which templates there should be.
func (s *stock) kept() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keep // never changed, only replaced
}

// StockCounts are the statistics of one pool's stock.
type StockCounts struct {
	// Ready is the number of boxes that can be claimed now.
	Ready int64
	// Claims are creates that were served from stock, Misses those that could have been.
	Claims, Misses int64
}

func (s *stock) counts() StockCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := StockCounts{Claims: s.claims, Misses: s.misses}
	for _, boxes := range s.ready {
		counts.Ready += int64(boxes)
	}
	return counts
}
