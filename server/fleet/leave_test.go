package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// A sandbox that nobody waits for any more is removed also when the fleet stops meanwhile, wherever its create is.
func TestCallerThatLeavesAtTheStop(t *testing.T) {
	cases := map[string]func(p *fake, hold func()){
		"while the box is made": func(p *fake, hold func()) {
			p.after = func(context.Context, adapters.Spec) error { hold(); return nil }
		},
		"when it is running": func(p *fake, hold func()) { p.onReach = hold },
	}
	for name, behave := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.Timing.Stop = 10 * time.Second })
			reached, release := make(chan struct{}), make(chan struct{})
			b.provider.with(func(p *fake) { behave(p, func() { close(reached); <-release }) })
			ctx, leave := context.WithCancel(t.Context())
			answer := make(chan error, 1)
			go func() {
				_, err := b.fleet.Create(ctx, request())
				answer <- err
			}()
			<-reached
			leave()
			requireKind(t, adapters.KindUnavailable, <-answer)
			b.cancel()
			b.cancel = nil
			require.Eventually(t, func() bool { return b.fleet.tasks.isClosed() }, 30*time.Second, time.Millisecond)
			close(release)
			require.NoError(t, <-b.ended)
			require.Zero(t, b.provider.count())
			all, err := b.store.Sandboxes.All(t.Context())
			require.NoError(t, err)
			require.Empty(t, all)
			require.NoError(t, b.store.Engine().Close())
		})
	}
}

// isClosed reports whether nothing new can be started.
func (t *tasks) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}
