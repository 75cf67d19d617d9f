package fault

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// Powers are those of what is inside, each under the plan. The news of a box's end is passed on as it is.
func (p *Provider) Powers() adapters.Powers {
	found := adapters.Powers{Watcher: p.powers.Watcher, Explainer: p.powers.Explainer}
	if p.powers.Extender != nil {
		found.Extender = extender{p}
	}
	if p.powers.Meter != nil {
		found.Meter = meter{p}
	}
	if p.powers.Journal != nil {
		found.Journal = journal{p}
	}
	if p.powers.Stocker != nil {
		found.Stocker = stocker{p}
	}
	if p.powers.Bootable != nil {
		found.Bootable = bootable{p}
	}
	if p.powers.Native != nil {
		found.Native = native{p}
	}
	if p.powers.Pauser != nil {
		found.Pauser = pauser{p}
	}
	if p.powers.Snapshotter != nil {
		found.Snapshotter = snapshotter{p}
	}
	if p.powers.Networker != nil {
		found.Networker = networker{p}
	}
	return found
}

type extender struct{ *Provider }

// Extend passes the call on, or fails by the plan.
func (p extender) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	return only(ctx, p.Provider, Extend, func() error { return p.powers.Extender.Extend(ctx, boxID, deadline) })
}

type meter struct{ *Provider }

// Measure passes the call on, or fails by the plan.
func (p meter) Measure(ctx context.Context, boxID string) (adapters.Sample, error) {
	return through(ctx, p.Provider, Measure, func() (adapters.Sample, error) { return p.powers.Meter.Measure(ctx, boxID) })
}

type journal struct{ *Provider }

// Entries passes the call on, or fails by the plan.
func (p journal) Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error) {
	return through(ctx, p.Provider, Entries, func() ([]envd.JournalEntry, error) { return p.powers.Journal.Entries(ctx, boxID, after) })
}

type stocker struct{ *Provider }

// Stock passes the call on, or fails by the plan.
func (p stocker) Stock(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return through(ctx, p.Provider, Stock, func() (adapters.Box, error) { return p.powers.Stocker.Stock(ctx, spec) })
}

// Claim passes the call on, or fails by the plan.
func (p stocker) Claim(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return through(ctx, p.Provider, Claim, func() (adapters.Box, error) { return p.powers.Stocker.Claim(ctx, spec) })
}

// Unstock passes the call on, or fails by the plan.
func (p stocker) Unstock(ctx context.Context, boxID string) error {
	return only(ctx, p.Provider, Unstock, func() error { return p.powers.Stocker.Unstock(ctx, boxID) })
}

type bootable struct{ *Provider }

// Put passes the call on, or fails by the plan.
func (p bootable) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	return only(ctx, p.Provider, Put, func() error { return p.powers.Bootable.Put(ctx, boxID, path, mode, content) })
}

// Exec passes the call on, or fails by the plan.
func (p bootable) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	return through(ctx, p.Provider, Exec, func() (adapters.Execution, error) { return p.powers.Bootable.Exec(ctx, boxID, argv) })
}

type native struct{ *Provider }

// Native passes the call on, or fails by the plan.
func (p native) Native(ctx context.Context, boxID string) (adapters.Inner, error) {
	return through(ctx, p.Provider, Native, func() (adapters.Inner, error) { return p.powers.Native.Native(ctx, boxID) })
}

type pauser struct{ *Provider }

// Pause passes the call on, or fails by the plan.
func (p pauser) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	return only(ctx, p.Provider, Pause, func() error { return p.powers.Pauser.Pause(ctx, boxID, level) })
}

// Resume passes the call on, or fails by the plan.
func (p pauser) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return through(ctx, p.Provider, Resume, func() (adapters.Box, error) { return p.powers.Pauser.Resume(ctx, spec) })
}

type snapshotter struct{ *Provider }

// Snapshot passes the call on, or fails by the plan.
func (p snapshotter) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	return through(ctx, p.Provider, Snapshot, func() (adapters.Snapshot, error) { return p.powers.Snapshotter.Snapshot(ctx, spec, name) })
}

// Snapshots passes the call on, or fails by the plan.
func (p snapshotter) Snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	return through(ctx, p.Provider, Snapshots, func() ([]adapters.Snapshot, error) { return p.powers.Snapshotter.Snapshots(ctx, deployment) })
}

// Forget passes the call on, or fails by the plan.
func (p snapshotter) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	return only(ctx, p.Provider, Forget, func() error { return p.powers.Snapshotter.Forget(ctx, snapshot) })
}

type networker struct{ *Provider }

// SetNetwork passes the call on, or fails by the plan.
func (p networker) SetNetwork(ctx context.Context, boxID string, network adapters.Network) error {
	return only(ctx, p.Provider, SetNetwork, func() error { return p.powers.Networker.SetNetwork(ctx, boxID, network) })
}
