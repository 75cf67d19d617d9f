package daytona

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// throttle counts requests in windows of a minute, by throttler.
type throttle struct {
	rates map[string]int

	mu    sync.Mutex
	begun time.Time
	used  map[string]int
}

// pass counts one request and says in the header how many are left; an error when there is none.
func (t *throttle) pass(header http.Header, throttler string) error {
	limit, limited := t.rates[throttler]
	if !limited {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.used == nil || now.Sub(t.begun) >= time.Minute {
		t.begun, t.used = now, map[string]int{}
	}
	reset := strconv.Itoa(int((time.Minute-time.Since(t.begun))/time.Second) + 1)
	t.used[throttler]++
	left := limit - t.used[throttler]
	header.Set("X-RateLimit-Limit-"+throttler, strconv.Itoa(limit))
	header.Set("X-RateLimit-Remaining-"+throttler, strconv.Itoa(max(left, 0)))
	header.Set("X-RateLimit-Reset-"+throttler, reset)
	if left >= 0 {
		return nil
	}
	return tooMany(throttler, reset)
}

// tooMany is the answer to a request beyond a limit of rate.
func tooMany(throttler, seconds string) *failure {
	return &failure{Status: http.StatusTooManyRequests, Message: "ThrottlerException: Too Many Requests", Header: http.Header{
		"Retry-After": {seconds}, http.CanonicalHeaderKey("Retry-After-" + throttler): {seconds},
	}}
}
