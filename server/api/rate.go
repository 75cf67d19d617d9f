package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/isthmus/isthmus/translate"
)

const (
	// burstSeconds is for how many seconds' calls a key that was quiet may make at once.
	burstSeconds = 2
	// knownCallers bounds the keys that are remembered; one that is forgotten starts anew.
	knownCallers = 10_000
)

// callers bounds how often each API key calls the control plane. Streams and files, the data plane, do not count.
type callers struct {
	most rate.Limit // calls in a second
	now  func() time.Time

	mu   sync.Mutex
	keys map[string]*rate.Limiter
}

// newCallers allows each key so many calls in a second; 0: any number.
func newCallers(perSecond int, now func() time.Time) *callers {
	return &callers{most: rate.Limit(perSecond), now: now, keys: map[string]*rate.Limiter{}}
}

// admit takes one call of a key, or returns the 429 that says when to come again. SDKs repeat a call by themselves
// where that is a whole number of seconds.
func (c *callers) admit(key string) error {
	if c.most == 0 {
		return nil
	}
	now := c.now()
	reservation := c.of(key, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return &translate.Failure{
		Status: http.StatusTooManyRequests, RetryAfter: wait, Retry: translate.RetryYes,
		Message: fmt.Sprintf("This API key makes more than %.0f calls a second: wait a moment, or have the operator raise limits.calls_per_second.", float64(c.most)),
	}
}

func (c *callers) of(key string, now time.Time) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.keys[key]
	if known == nil {
		if len(c.keys) >= knownCallers {
			c.forget(now)
		}
		known = rate.NewLimiter(c.most, burstSeconds*int(c.most))
		c.keys[key] = known
	}
	return known
}

// forget makes room: it drops whoever was quiet, and where that is not half of all, anybody else. So much at once, that
// looking at all of them is rare.
func (c *callers) forget(now time.Time) {
	for key, one := range c.keys {
		if one.TokensAt(now) >= float64(one.Burst()) {
			delete(c.keys, key)
		}
	}
	for key := range c.keys {
		if len(c.keys) <= knownCallers/2 {
			return
		}
		delete(c.keys, key)
	}
}
