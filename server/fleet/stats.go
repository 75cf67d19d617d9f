package fleet

import (
	"maps"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// stats counts what the fleet has done since the start of the process.
type stats struct {
	mu       sync.Mutex
	inFlight int
	creates  map[string]int64 // by outcome: "ok" or the error's kind
	seconds  float64          // of the creates that went well
	ends     map[string]int64 // by reason
	orphans  int64
}

// Counts is a copy of the statistics.
type Counts struct {
	CreatesInFlight int
	Creates         map[string]int64
	CreateSeconds   float64
	Ends            map[string]int64
	Orphans         int64
	// Reachable is the number of running sandboxes.
	Reachable int
	// Stock is by pool; pools that cannot have one are left out.
	Stock map[string]StockCounts
}

func (s *stats) begun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight++
}

func (s *stats) created(since time.Time, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(adapters.KindOf(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if s.creates == nil {
		s.creates = map[string]int64{}
	}
	s.creates[outcome]++
	if err == nil {
		s.seconds += time.Since(since).Seconds()
	}
}

func (s *stats) ended(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[string]int64{}
	}
	s.ends[reason]++
}

func (s *stats) orphan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans++
}

// Counts returns the statistics as of now.
func (f *Fleet) Counts() Counts {
	reachable, stocks := len(f.homes.list()), map[string]StockCounts{}
	for _, p := range f.pools.all() {
		if p.stock != nil {
			stocks[p.name] = p.stock.counts()
		}
	}
	f.stats.mu.Lock()
	defer f.stats.mu.Unlock()
	return Counts{
		CreatesInFlight: f.stats.inFlight, Creates: maps.Clone(f.stats.creates), CreateSeconds: f.stats.seconds,
		Ends: maps.Clone(f.stats.ends), Orphans: f.stats.orphans, Reachable: reachable, Stock: stocks,
	}
}
