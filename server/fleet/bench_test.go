package fleet

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
	"github.com/isthmus/isthmus/translate/placement"
)

// bench is one deployment: a data folder and a provider, which stay, and the fleet that runs on them.
type bench struct {
	t        testing.TB
	dir      string
	provider *fake
	adjust   func(*Config)

	fleet  *Fleet
	store  *store.Store
	cancel context.CancelFunc
	ended  chan error
}

// start makes a bench with a running fleet. adjust changes its configuration.
func start(t testing.TB, adjust func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), provider: newFake(), adjust: adjust}
	t.Cleanup(b.provider.health.Close)
	b.up()
	t.Cleanup(b.stop)
	return b
}

// up starts a fleet over what is there.
func (b *bench) up() {
	b.t.Helper()
	engine, err := badger.Open(b.dir+"/db", slog.New(slog.DiscardHandler))
	require.NoError(b.t, err)
	b.store, err = store.Open(b.t.Context(), engine)
	require.NoError(b.t, err)
	secrets, err := LoadSecrets(b.dir + "/key")
	require.NoError(b.t, err)
	cfg := Config{
		Store: b.store, Secrets: secrets, Pools: []Pool{{Name: "one", Provider: b.provider}},
		Timing: Timing{Settle: 200 * time.Millisecond, Refill: time.Millisecond, Stop: 2 * time.Second, Sample: 20 * time.Millisecond, Reconcile: time.Hour},
	}
	if b.adjust != nil {
		b.adjust(&cfg)
	}
	b.fleet, err = New(cfg)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.ended = cancel, make(chan error, 1)
	go func(f *Fleet) { b.ended <- f.Run(ctx) }(b.fleet)
	<-b.fleet.Ready()
}

// stop ends the fleet in good order. Twice is fine.
func (b *bench) stop() {
	if b.cancel == nil {
		return
	}
	b.cancel()
	b.cancel = nil
	require.NoError(b.t, <-b.ended)
	require.NoError(b.t, b.store.Engine().Close())
}

// restart stops and starts again over the same folder and provider.
func (b *bench) restart() {
	b.t.Helper()
	b.stop()
	b.up()
}

// request is a create of one minute.
func request() placement.Request {
	return placement.Request{TeamID: "team", Template: "base", Timeout: time.Minute, Secure: true,
		Metadata: map[string]string{"k": "v"}, EnvVars: map[string]string{"B": "request"}}
}

func (b *bench) create(req placement.Request) store.Sandbox {
	b.t.Helper()
	sb, err := b.fleet.Create(b.t.Context(), req)
	require.NoError(b.t, err)
	return sb
}

// gone waits until nothing of a sandbox is left anywhere.
func (b *bench) gone(id string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		_, err := b.store.Sandboxes.Get(context.Background(), id)
		return err != nil && b.provider.box(id) == nil
	}, 30*time.Second, 5*time.Millisecond)
}

// cut is a copy of the record as a killed process would have left it.
func (b *bench) cut(id string, state store.State) {
	b.t.Helper()
	_, err := b.store.Sandboxes.Change(b.t.Context(), id, func(sb *store.Sandbox) error {
		sb.State = state
		return nil
	})
	require.NoError(b.t, err)
}

// requireKind checks the kind of an error.
func requireKind(t *testing.T, kind adapters.Kind, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, adapters.KindOf(err), "%v", err)
}

// together runs fn n times at once and waits for all.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { fn(i) })
	}
	all.Wait()
}
