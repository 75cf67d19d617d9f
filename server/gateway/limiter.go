package gateway

import (
	"net/netip"
	"sync"
	"time"
)

// limiter counts misses by address and says which addresses have too many. It forgets an address as time pays
// its misses off, and holds a bounded number of them: with more, it forgets any.
type limiter struct {
	each  time.Duration // that one miss costs
	depth time.Duration // that an address may be in debt
	size  int
	now   func() time.Time

	mu   sync.Mutex
	debt map[netip.Addr]time.Time // when everything is paid off
}

func newLimiter(perSecond, atOnce, size int) *limiter {
	each := time.Second / time.Duration(perSecond)
	return &limiter{
		each:  each,
		depth: each * time.Duration(atOnce),
		size:  size,
		now:   time.Now,
		debt:  map[netip.Addr]time.Time{},
	}
}

// allows reports whether the address may try.
func (l *limiter) allows(address netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.debt[address].Sub(l.now()) < l.depth
}

// note counts a miss.
func (l *limiter) note(address netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	paid, known := l.debt[address]
	if !known && len(l.debt) >= l.size {
		l.forget(now)
	}
	if paid.Before(now) {
		paid = now
	}
	l.debt[address] = paid.Add(l.each)
}

// forget makes room: it drops whoever owes nothing, or else anybody.
func (l *limiter) forget(now time.Time) {
	for address, paid := range l.debt {
		if paid.Before(now) {
			delete(l.debt, address)
		}
	}
	for address := range l.debt {
		if len(l.debt) < l.size {
			return
		}
		delete(l.debt, address)
	}
}
