package api_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// Keys of the two teams that every test knows.
const (
	keyOne = "e2b_00000000000000000000000000000000000000a1"
	keyTwo = "e2b_00000000000000000000000000000000000000b2"
)

// start is the fake fleet's clock, which stands still.
var start = time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)

// fakeKeys knows the two teams.
type fakeKeys struct{}

func (fakeKeys) TeamByKeyHash(_ context.Context, hash string) (store.Team, store.Key, bool, error) {
	switch hash {
	case auth.Hash(keyOne):
		return store.Team{ID: "11111111-1111-4111-8111-111111111111", Name: "one", Default: true}, store.Key{ID: "k1"}, true, nil
	case auth.Hash(keyTwo):
		return store.Team{ID: "22222222-2222-4222-8222-222222222222", Name: "two"}, store.Key{ID: "k2"}, true, nil
	}
	return store.Team{}, store.Key{}, false, nil
}

// fakeFleet keeps sandboxes in memory and notes every call that changes something.
type fakeFleet struct {
	mu        sync.Mutex
	sandboxes map[string]store.Sandbox
	requests  []placement.Request
	changes   []string
	logQuery  store.LogQuery
	window    [2]time.Time
	fail      error // the next calls' outcome, when set
	panics    any
}

func newFakeFleet() *fakeFleet {
	fleet := &fakeFleet{}
	fleet.reset()
	return fleet
}

// reset forgets everything.
func (f *fakeFleet) reset() {
	f.sandboxes, f.requests, f.changes, f.fail, f.panics = map[string]store.Sandbox{}, nil, nil, nil, nil
}

// enter notes a call, and fails or panics when it shall.
func (f *fakeFleet) enter(change string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics != nil {
		panic(f.panics)
	}
	if change != "" {
		f.changes = append(f.changes, change)
	}
	return f.fail
}

// add puts a sandbox in that started n minutes after the start.
func (f *fakeFleet) add(team, id string, n int, metadata map[string]string) {
	f.sandboxes[id] = store.Sandbox{
		ID: id, TeamID: team, State: store.StateRunning, Template: "tpl00000000000000000", Alias: "base",
		StartedAt: start.Add(time.Duration(n) * time.Minute), EndAt: start.Add(time.Hour),
		CPU: 2, MemoryMB: 1024, DiskMB: 10240, EnvdVersion: envd.Version, Secure: true, Metadata: metadata,
	}
}

func (f *fakeFleet) Create(_ context.Context, r placement.Request) (store.Sandbox, error) {
	if err := f.enter("create"); err != nil {
		return store.Sandbox{}, err
	}
	template, err := f.Template(context.Background(), r.Template)
	if err != nil {
		return store.Sandbox{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	id := "i" + strings.Repeat("0", 19) + string(rune('a'+len(f.sandboxes)))
	f.sandboxes[id] = store.Sandbox{
		ID: id, TeamID: r.TeamID, State: store.StateRunning, Template: template.ID, Alias: template.Name,
		StartedAt: start, EndAt: start.Add(r.Timeout), CPU: 2, MemoryMB: 1024, DiskMB: 10240,
		EnvdVersion: envd.Version, Secure: r.Secure, Metadata: r.Metadata, Network: r.Network,
	}
	return f.sandboxes[id], nil
}

func (f *fakeFleet) find(team, id string) (store.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sb, ok := f.sandboxes[id]
	if !ok || sb.TeamID != team {
		return sb, adapters.Errorf(adapters.KindNotFound, "no sandbox %s", id)
	}
	return sb, nil
}

func (f *fakeFleet) Connect(_ context.Context, team, id string, wake placement.Wake) (store.Sandbox, bool, error) {
	if err := f.enter("connect " + wake.Timeout.String() + says("memory", wake.Memory) + says("autoPause", wake.AutoPause)); err != nil {
		return store.Sandbox{}, false, err
	}
	sb, err := f.find(team, id)
	return sb, sb.State == store.StatePaused, err
}

func (f *fakeFleet) Sandbox(_ context.Context, team, id string) (store.Sandbox, error) {
	if err := f.enter(""); err != nil {
		return store.Sandbox{}, err
	}
	return f.find(team, id)
}

func (f *fakeFleet) List(_ context.Context, q store.SandboxQuery) (store.SandboxPage, error) {
	if err := f.enter(""); err != nil {
		return store.SandboxPage{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []store.Sandbox
	for _, sb := range f.sandboxes {
		if matches(sb, q) {
			all = append(all, sb)
		}
	}
	before := func(a, b store.Sandbox) int {
		order := b.StartedAt.Compare(a.StartedAt)
		if order == 0 {
			order = strings.Compare(b.ID, a.ID)
		}
		if q.Ascending {
			order = -order
		}
		return order
	}
	slices.SortFunc(all, before)
	page := store.SandboxPage{}
	for _, sb := range all {
		if sb.State == store.StateRunning {
			page.Running++
		}
		if q.After != nil && before(sb, store.Sandbox{ID: q.After.ID, StartedAt: q.After.StartedAt}) <= 0 {
			continue
		}
		if q.Limit > 0 && len(page.Sandboxes) == q.Limit {
			last := page.Sandboxes[q.Limit-1]
			page.Next = &store.SandboxCursor{StartedAt: last.StartedAt, ID: last.ID}
			continue
		}
		page.Sandboxes = append(page.Sandboxes, sb)
	}
	return page, nil
}

func matches(sb store.Sandbox, q store.SandboxQuery) bool {
	for k, v := range q.Metadata {
		if got, ok := sb.Metadata[k]; !ok || got != v {
			return false
		}
	}
	return sb.TeamID == q.TeamID && slices.Contains(q.States, sb.State) &&
		(q.Template == "" || sb.Template == q.Template) && !sb.StartedAt.Before(q.StartedAfter)
}

func (f *fakeFleet) Kill(_ context.Context, team, id string) error {
	if err := f.enter("kill"); err != nil {
		return err
	}
	_, err := f.find(team, id)
	delete(f.sandboxes, id)
	return err
}

func (f *fakeFleet) SetTimeout(_ context.Context, team, id string, d time.Duration) error {
	if err := f.enter("timeout " + d.String()); err != nil {
		return err
	}
	_, err := f.find(team, id)
	return err
}

func (f *fakeFleet) Refresh(_ context.Context, team, id string, d time.Duration) error {
	if err := f.enter("refresh " + d.String()); err != nil {
		return err
	}
	_, err := f.find(team, id)
	return err
}

func (f *fakeFleet) Metrics(_ context.Context, team, id string, from, to time.Time) ([]store.Metric, error) {
	if err := f.enter(""); err != nil {
		return nil, err
	}
	f.window = [2]time.Time{from, to}
	if _, err := f.find(team, id); err != nil {
		return nil, err
	}
	return []store.Metric{{At: start, CPUCount: 2, CPUUsedPct: 12.345678901, MemUsed: 1 << 40}}, nil
}

func (f *fakeFleet) LatestMetrics(_ context.Context, team string, ids []string) (map[string]store.Metric, error) {
	if err := f.enter(""); err != nil {
		return nil, err
	}
	found := map[string]store.Metric{}
	for _, id := range ids {
		if _, err := f.find(team, id); err == nil {
			found[id] = store.Metric{At: start, CPUCount: 2}
		}
	}
	return found, nil
}

func (f *fakeFleet) Logs(_ context.Context, team, id string, q store.LogQuery) ([]store.LogEntry, error) {
	if err := f.enter(""); err != nil {
		return nil, err
	}
	f.logQuery = q
	if _, err := f.find(team, id); err != nil {
		return nil, err
	}
	return []store.LogEntry{{At: start, Level: store.LevelInfo, Logger: "envd", Message: "started", Fields: map[string]string{"pid": "7"}}}, nil
}

func (f *fakeFleet) Tokens(sb store.Sandbox) (string, string) {
	var envdToken, traffic string
	if sb.Secure {
		envdToken = "envd-" + sb.ID
	}
	if !sb.Network.PublicTraffic() {
		traffic = "traffic-" + sb.ID
	}
	return envdToken, traffic
}

func (f *fakeFleet) Template(_ context.Context, name string) (adapters.Template, error) {
	templates := map[string]string{"base": "tpl00000000000000000", "python": "tpl00000000000000001"}
	for alias, id := range maps.All(templates) {
		if name == alias || name == id {
			return adapters.Template{ID: id, Name: alias}, nil
		}
	}
	return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "no template %s: there are base, python", name)
}

func (f *fakeFleet) KnowsTemplate(ctx context.Context, team, reference string) error {
	if reference == "mine" && team == teamOne {
		return nil
	}
	_, err := f.Template(ctx, reference)
	return err
}

func (f *fakeFleet) MaxLife() time.Duration { return 24 * time.Hour }

// says writes a switch that is set.
func says(name string, value *bool) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf(" %s=%t", name, *value)
}

func (f *fakeFleet) Pause(_ context.Context, team, id string, how placement.Pause) error {
	call := "pause" + says("memory", how.Memory)
	if how.Healthy {
		call += " healthy"
	}
	if err := f.enter(call); err != nil {
		return err
	}
	sb, err := f.find(team, id)
	if err == nil && sb.State == store.StatePaused {
		return adapters.Errorf(adapters.KindPrecondition, "paused already")
	}
	sb.State, sb.PauseLevel = store.StatePaused, "memory"
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.sandboxes[id] = sb
	}
	return err
}

func (f *fakeFleet) SetNetwork(_ context.Context, team, id string, network store.Network, rules []adapters.HeaderRule) error {
	if err := f.enter(fmt.Sprintf("network %v %v %v %d", network.Internet(), network.AllowOut, network.DenyOut, len(rules))); err != nil {
		return err
	}
	_, err := f.find(team, id)
	return err
}

func (f *fakeFleet) Snapshot(_ context.Context, team, id, name string, memory *bool) (store.Snapshot, error) {
	if err := f.enter("snapshot " + name + says("memory", memory)); err != nil {
		return store.Snapshot{}, err
	}
	_, err := f.find(team, id)
	return store.Snapshot{ID: "s0000000000000000000", Name: name}, err
}

func (f *fakeFleet) Snapshots(_ context.Context, q store.SnapshotQuery) (store.SnapshotPage, error) {
	if err := f.enter(fmt.Sprintf("snapshots %s %s %d", q.SandboxID, q.Name, q.Limit)); err != nil {
		return store.SnapshotPage{}, err
	}
	return store.SnapshotPage{
		Snapshots: []store.Snapshot{{ID: "s0000000000000000000", Name: "mine:default"}, {ID: "s0000000000000000001"}},
		Next:      &store.SandboxCursor{StartedAt: start, ID: "s0000000000000000001"},
	}, nil
}

func (f *fakeFleet) RemoveSnapshot(_ context.Context, _, reference string) error {
	if err := f.enter("remove " + reference); err != nil {
		return err
	}
	if reference != "mine" {
		return adapters.Errorf(adapters.KindNotFound, "no snapshot %s", reference)
	}
	return nil
}
