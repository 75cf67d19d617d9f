//go:build linux

package local

import (
	"context"

	"github.com/isthmus/isthmus/adapters"
)

// remains are a box that nothing can be done with but to remove it: what a clean-up could not remove, or what an
// earlier facade left and this one could not take over. It stays in the table until a Destroy has succeeded, so
// that nothing is left on the machine that nobody can find.
type remains struct {
	known  adapters.Box // what the contract sees; Alive: it may still serve, and another start may take it over
	box    *box         // nil unless this process made it or took it over
	record record       // empty: it could not be read
	path   string
}

// remains is a box as one that is to be removed.
func (b *box) remains() *remains {
	r := &remains{known: b.describe(), box: b, record: b.as().record, path: b.as().path}
	r.known.Alive = false
	return r
}

// remains is what a maker made that failed, with the box if it came to one.
func (m *maker) remains(b *box) *remains {
	return &remains{known: m.record.describe(m.record.BoxID), box: b, record: m.record, path: m.path}
}

// describe is the box of a record as the contract sees it, under the id that it is known by here. Of a record that
// could not be read it says what is true of any box that serves.
func (r record) describe(id string) adapters.Box {
	b := adapters.Box{ID: id, Attempt: r.Attempt, Deployment: r.Deployment, SandboxID: r.SandboxID, CreatedAt: r.CreatedAt}
	if r.BoxID == "" {
		b.SandboxID = id
	}
	return b
}

// clear removes a box, whatever it came to. When it fails, another try must be possible.
func (l *Local) clear(ctx context.Context, left *remains) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	if left.box != nil {
		if err := l.end(ctx, left.box); err != nil {
			return err
		}
	}
	r := left.record
	if r.BoxID == "" {
		var err error
		if r, err = loadRecord(left.path); err != nil {
			return err
		}
	}
	if err := l.discard(ctx, r, left.path); err != nil || l.ids == nil {
		return err
	}
	return l.ids.Release(left.known.ID) // a claim that failed may have passed the ids on already
}

// somethingLeft is the answer when neither the box nor its absence could be had.
func somethingLeft(cause error) error {
	return adapters.Wrap(adapters.KindUnknownOutcome, cause,
		"the sandbox could not be started on this machine, and something of it is left there: kill it, and see Isthmus's log")
}
