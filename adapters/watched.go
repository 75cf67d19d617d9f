package adapters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// Watched is a provider around another one that marks the capabilities of which an answer was not understood. It is
// safe for concurrent use. Nothing is refused because of a mark.
type Watched struct {
	inner    Provider
	powers   Powers
	declared Capabilities
	drifts   drifts
	noted    func(Drift)
}

var _ Wrapper = (*Watched)(nil)

// Watch wraps a provider. noted is told of each mark when it is set and when it is taken off; nil: nobody is.
func Watch(inner Provider, noted func(Drift)) *Watched {
	if noted == nil {
		noted = func(Drift) {}
	}
	return &Watched{inner: inner, powers: PowersOf(inner), declared: CapabilitiesOf(inner), noted: noted}
}

// Drifts returns the marks by feature and operation, also those that were taken off since.
func (w *Watched) Drifts() []Drift { return w.drifts.list() }

// note draws the consequences of one call. An answer that was not understood gives an error that says which
// capability it touched and since when; success takes the operation's marks off, as does the proof that a box is not
// there. Any other failure says nothing either way.
func (w *Watched) note(operation string, feature Feature, err error) error {
	touched := Touching(feature, err)
	misread := MisreadOf(touched)
	if misread == nil {
		if err == nil || operation == "get" && KindOf(err) == KindNotFound {
			for _, cleared := range w.drifts.clear(operation) {
				w.noted(cleared)
			}
		}
		return err
	}
	mark, anew := w.drifts.mark(operation, misread.Feature, w.value(misread.Feature), misread.Reason)
	if anew {
		w.noted(mark)
	}
	var typed *Error
	errors.As(touched, &typed)
	said := *typed
	said.Message = fmt.Sprintf("%s. What the pool's provider answers to %s (%s) is not understood since %s",
		typed.Message, operation, misread.Feature, mark.First.Format(time.RFC3339))
	return &said
}

// value is what is declared of a feature. What every provider does is declared by the contract.
func (w *Watched) value(feature Feature) string {
	switch feature {
	case FeatureCreate, FeatureFind, FeatureDestroy, FeatureTemplates:
		return Yes
	}
	return w.declared.Value(feature)
}

// watch makes one call.
func watch[V any](w *Watched, operation string, feature Feature, call func() (V, error)) (V, error) {
	value, err := call()
	return value, w.note(operation, feature, err)
}

// Describe passes the call on.
func (w *Watched) Describe() Description { return w.inner.Describe() }

// Run passes the call on.
func (w *Watched) Run(ctx context.Context) error { return w.inner.Run(ctx) }

// Resolve passes the call on.
func (w *Watched) Resolve(ctx context.Context, name string) (Template, error) {
	return watch(w, "resolve", FeatureTemplates, func() (Template, error) { return w.inner.Resolve(ctx, name) })
}

// Create passes the call on. One that went well although an answer was not understood is marked, too.
func (w *Watched) Create(ctx context.Context, spec Spec) (Box, error) {
	const operation = "create"
	ctx, overcome := overcoming(ctx)
	box, err := w.inner.Create(ctx, spec)
	if misread := overcome.Load(); err == nil && misread != nil {
		_ = w.note(operation, FeatureCreate, misread)
		return box, nil
	}
	return box, w.note(operation, FeatureCreate, err)
}

// Get passes the call on.
func (w *Watched) Get(ctx context.Context, boxID string) (Box, error) {
	return watch(w, "get", FeatureFind, func() (Box, error) { return w.inner.Get(ctx, boxID) })
}

// List passes the call on.
func (w *Watched) List(ctx context.Context, deployment string) ([]Box, error) {
	return watch(w, "list", FeatureFind, func() ([]Box, error) { return w.inner.List(ctx, deployment) })
}

// Destroy passes the call on.
func (w *Watched) Destroy(ctx context.Context, boxID string) error {
	return w.note("destroy", FeatureDestroy, w.inner.Destroy(ctx, boxID))
}

// Reach passes the call on.
func (w *Watched) Reach(ctx context.Context, boxID string) (Endpoint, error) {
	return watch(w, "reach", FeaturePorts, func() (Endpoint, error) { return w.inner.Reach(ctx, boxID) })
}

// Powers are those of what is inside. The news of a box's end is passed on as it is.
func (w *Watched) Powers() Powers {
	found := Powers{Watcher: w.powers.Watcher, Explainer: w.powers.Explainer}
	if w.powers.Extender != nil {
		found.Extender = watchedExtender{w}
	}
	if w.powers.Meter != nil {
		found.Meter = watchedMeter{w}
	}
	if w.powers.Journal != nil {
		found.Journal = watchedJournal{w}
	}
	if w.powers.Stocker != nil {
		found.Stocker = watchedStocker{w}
	}
	if w.powers.Bootable != nil {
		found.Bootable = watchedBootable{w}
	}
	if w.powers.Native != nil {
		found.Native = watchedNative{w}
	}
	if w.powers.Pauser != nil {
		found.Pauser = watchedPauser{w}
	}
	if w.powers.Snapshotter != nil {
		found.Snapshotter = watchedSnapshotter{w}
	}
	if w.powers.Networker != nil {
		found.Networker = watchedNetworker{w}
	}
	return found
}

type watchedExtender struct{ *Watched }

// Extend passes the call on.
func (w watchedExtender) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	return w.note("extend", FeatureExtend, w.powers.Extender.Extend(ctx, boxID, deadline))
}

type watchedMeter struct{ *Watched }

// Measure passes the call on.
func (w watchedMeter) Measure(ctx context.Context, boxID string) (Sample, error) {
	return watch(w.Watched, "measure", FeatureMetrics, func() (Sample, error) { return w.powers.Meter.Measure(ctx, boxID) })
}

type watchedJournal struct{ *Watched }

// Entries passes the call on.
func (w watchedJournal) Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error) {
	return watch(w.Watched, "entries", FeatureLogs, func() ([]envd.JournalEntry, error) { return w.powers.Journal.Entries(ctx, boxID, after) })
}

type watchedStocker struct{ *Watched }

// Stock passes the call on.
func (w watchedStocker) Stock(ctx context.Context, spec Spec) (Box, error) {
	return watch(w.Watched, "stock", FeatureStock, func() (Box, error) { return w.powers.Stocker.Stock(ctx, spec) })
}

// Claim passes the call on.
func (w watchedStocker) Claim(ctx context.Context, spec Spec) (Box, error) {
	return watch(w.Watched, "claim", FeatureStock, func() (Box, error) { return w.powers.Stocker.Claim(ctx, spec) })
}

// Unstock passes the call on.
func (w watchedStocker) Unstock(ctx context.Context, boxID string) error {
	return w.note("unstock", FeatureStock, w.powers.Stocker.Unstock(ctx, boxID))
}

type watchedBootable struct{ *Watched }

// Put passes the call on.
func (w watchedBootable) Put(ctx context.Context, boxID, path string, mode fs.FileMode, content io.Reader) error {
	return w.note("put", FeatureFiles, w.powers.Bootable.Put(ctx, boxID, path, mode, content))
}

// Exec passes the call on.
func (w watchedBootable) Exec(ctx context.Context, boxID string, argv []string) (Execution, error) {
	return watch(w.Watched, "exec", FeatureExec, func() (Execution, error) { return w.powers.Bootable.Exec(ctx, boxID, argv) })
}

type watchedNative struct{ *Watched }

// Native passes the call on.
func (w watchedNative) Native(ctx context.Context, boxID string) (Inner, error) {
	return watch(w.Watched, "native", FeaturePorts, func() (Inner, error) { return w.powers.Native.Native(ctx, boxID) })
}

type watchedPauser struct{ *Watched }

// Pause passes the call on.
func (w watchedPauser) Pause(ctx context.Context, boxID string, level Level) error {
	return w.note("pause", FeaturePause, w.powers.Pauser.Pause(ctx, boxID, level))
}

// Resume passes the call on.
func (w watchedPauser) Resume(ctx context.Context, spec Spec) (Box, error) {
	return watch(w.Watched, "resume", FeaturePause, func() (Box, error) { return w.powers.Pauser.Resume(ctx, spec) })
}

type watchedSnapshotter struct{ *Watched }

// Snapshot passes the call on.
func (w watchedSnapshotter) Snapshot(ctx context.Context, spec Spec, name string) (Snapshot, error) {
	return watch(w.Watched, "snapshot", FeatureSnapshot, func() (Snapshot, error) { return w.powers.Snapshotter.Snapshot(ctx, spec, name) })
}

// Snapshots passes the call on.
func (w watchedSnapshotter) Snapshots(ctx context.Context, deployment string) ([]Snapshot, error) {
	return watch(w.Watched, "snapshots", FeatureSnapshot, func() ([]Snapshot, error) { return w.powers.Snapshotter.Snapshots(ctx, deployment) })
}

// Forget passes the call on.
func (w watchedSnapshotter) Forget(ctx context.Context, snapshot Snapshot) error {
	return w.note("forget", FeatureSnapshot, w.powers.Snapshotter.Forget(ctx, snapshot))
}

type watchedNetworker struct{ *Watched }

// SetNetwork passes the call on.
func (w watchedNetworker) SetNetwork(ctx context.Context, boxID string, network Network) error {
	return w.note("set_network", FeatureLiveNetwork, w.powers.Networker.SetNetwork(ctx, boxID, network))
}
