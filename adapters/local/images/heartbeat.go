package images

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// quietTime is how long a build may say nothing before a line says that it goes on.
const quietTime = 5 * time.Second

// heartbeat passes progress on, and speaks up itself when there is none.
type heartbeat struct {
	mu   sync.Mutex
	to   io.Writer
	last time.Time
}

// beat starts a heartbeat, which stop ends.
func beat(to io.Writer, every time.Duration) (h *heartbeat, stop func()) {
	begun := time.Now()
	h = &heartbeat{to: to, last: begun}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				h.speak(now, now.Sub(begun), every)
			}
		}
	}()
	return h, func() { close(end); <-ended }
}

// Write implements io.Writer.
func (h *heartbeat) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
	return h.to.Write(b)
}

func (h *heartbeat) speak(now time.Time, age, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.last) >= every {
		_, _ = fmt.Fprintf(h.to, "... still building the image, %s so far\n", age.Round(time.Second))
	}
}
