package daytona

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// A baked snapshot is a template with envd in it, so that a create uploads nothing. Its name says of which template,
// with which envd and of which sizes: another envd bakes another one.

// bakeTime bounds the baking of one snapshot: the first sandbox of an image takes minutes.
const bakeTime = 30 * time.Minute

// restTime is how long a recipe that failed is left alone.
const restTime = 10 * time.Minute

// labelBake marks the sandboxes in which snapshots are baked: they are no boxes.
const labelBake = "isthmus-bake"

// unfit are the characters that names of snapshots do not have.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// bakedName is the name of the snapshot of a template with envd.
func bakedName(t adapters.Template, sizes gib) string {
	return fmt.Sprintf("isthmus-envd.%s.%s.%d-%d-%d", t.ID, unfit.ReplaceAllString(envd.Version, "-"), sizes.cpu, sizes.memory, sizes.disk)
}

// recipe is a snapshot that is to be baked. One that is there and inactive, as Daytona makes those that were not used
// for long, is only activated.
type recipe struct {
	name, id, state string
	from            source
}

// bakery holds the recipes that are to be baked, each at most once.
type bakery struct {
	orders chan recipe

	mu    sync.Mutex
	after map[string]time.Time // when a recipe may be ordered again
}

func newBakery() *bakery {
	return &bakery{orders: make(chan recipe, 16), after: map[string]time.Time{}}
}

// order asks for a snapshot, unless it was asked for lately.
func (b *bakery) order(one recipe) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.after[one.name]) {
		return
	}
	select {
	case b.orders <- one:
		b.after[one.name] = time.Now().Add(bakeTime)
	default: // a later create asks again
	}
}

// rest lets a recipe be ordered again in a while.
func (b *bakery) rest(name string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.after[name] = time.Now().Add(d)
}

// bake bakes what is ordered, one after another, until ctx ends.
func (p *Provider) bake(ctx context.Context) {
	for {
		select {
		case one := <-p.bakery.orders:
			bounded, cancel := context.WithTimeout(ctx, bakeTime)
			err := p.bakeOne(bounded, one)
			cancel()
			p.unlearn(one.name)
			if err != nil && ctx.Err() == nil {
				p.log.Warn("a snapshot with envd could not be baked: sandboxes get it by upload", "snapshot", one.name, "err", err)
				p.bakery.rest(one.name, restTime)
				continue
			}
			p.bakery.rest(one.name, 0)
		case <-ctx.Done():
			return
		}
	}
}

// bakeOne makes a snapshot of a sandbox that has nothing but envd.
func (p *Provider) bakeOne(ctx context.Context, one recipe) error {
	switch one.state {
	case "":
	case snapshotInactive:
		err := p.api.send(ctx, request{method: http.MethodPost, path: "/snapshots/" + url.PathEscape(one.id) + "/activate"})
		if err == nil {
			_, err = p.untilActive(ctx, one.name)
		}
		return err
	case snapshotError, snapshotFailed:
		if err := p.api.send(ctx, request{method: http.MethodDelete, path: "/snapshots/" + url.PathEscape(one.id)}); err != nil {
			return err
		}
	default: // another facade bakes it
		_, err := p.untilActive(ctx, one.name)
		return err
	}
	boxID := "bake" + strings.ToLower(rand.Text())[:16]
	body := one.from.into(newSandbox{
		Name: boxID, User: "root", Target: p.config.Target, settings: settings{BlockAll: true}, TTLMinutes: int(bakeTime / time.Minute),
		Labels: map[string]string{labelID: boxID, labelBake: one.name},
	})
	made, err := p.post(ctx, adapters.Spec{BoxID: boxID}, body)
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		if err := p.Destroy(clean, boxID); err != nil {
			p.log.Warn("a sandbox in which a snapshot was baked is left: Daytona ends it at its time", "box", boxID, "err", err)
		}
	}()
	if err != nil {
		return err
	}
	p.learn(boxID, made)
	return p.bakeIn(ctx, boxID, made, one)
}

// bakeIn puts envd into a new sandbox and makes the snapshot.
func (p *Provider) bakeIn(ctx context.Context, boxID string, made sandbox, one recipe) error {
	made, err := p.until(ctx, made.ID, stateStarted)
	if err != nil {
		return err
	}
	if made, err = p.grow(ctx, made, one.from.sizes, one.from); err != nil {
		return err
	}
	program, err := p.config.Envd()
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	const mode = 0o755
	if err := p.Put(ctx, boxID, p.config.Path, mode, program); err != nil {
		return err
	}
	if p.config.Class == ClassVM { // a running one would be copied with its memory
		if err := p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(made.ID, "stop")}); err != nil {
			return err
		}
		if _, err := p.until(ctx, made.ID, stateStopped); err != nil {
			return err
		}
	}
	err = p.api.insist(ctx, request{method: http.MethodPost, path: sandboxPath(made.ID, "snapshot"), body: map[string]any{"name": one.name}})
	if err != nil && adapters.KindOf(err) != adapters.KindExists {
		return err
	}
	_, err = p.untilActive(ctx, one.name)
	return err
}
