package fleet

import (
	"slices"
	"sync"

	"github.com/isthmus/isthmus/adapters"
)

// pools are the configured places, in their order. The set is replaced as a whole, never changed.
type pools struct {
	mu  sync.RWMutex
	set []*pool
}

// all returns the pools in their order. The list is read-only.
func (s *pools) all() []*pool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.set
}

// get returns the pool of a name, or nil when it is not configured (any more).
func (s *pools) get(name string) *pool {
	all := s.all()
	if at := slices.IndexFunc(all, func(p *pool) bool { return p.name == name }); at >= 0 {
		return all[at]
	}
	return nil
}

func (s *pools) replace(set []*pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = set
	open := 0
	for _, p := range set {
		if !p.terms.Load().facts.Draining {
			open++
		}
	}
	for _, p := range set {
		p.alone.Store(open == 1)
	}
}

// poolOf returns the pool that a sandbox is bound to.
func (f *Fleet) poolOf(name string) (*pool, error) {
	if p := f.pools.get(name); p != nil {
		return p, nil
	}
	return nil, adapters.Errorf(adapters.KindUnavailable,
		"pool %s is not configured any more; the sandbox is kept: configure the pool again to reach it", name)
}
