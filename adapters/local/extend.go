//go:build linux

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
	"github.com/isthmus/isthmus/envd"
)

// The optional powers.
var (
	_ adapters.Provider = (*Local)(nil)
	_ adapters.Extender = (*Local)(nil)
	_ adapters.Journal  = (*Local)(nil)
)

// unreachable is the message for a box that runs but does not answer.
const unreachable = "the sandbox does not answer at the moment: it is kept, try again"

// Extend moves the daemon's own end of life. A daemon that knows it already is not told again: whoever looks after many
// idle boxes repeats it for each.
func (l *Local) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	b, err := l.boxes.get(boxID)
	if err != nil {
		return err
	}
	if b.as().record.Stocked { // its envd does not serve yet
		traffic, err := b.hand(ctx, inside.Claim{Until: deadline})
		handover.CloseAll(traffic)
		return asAdapterError(ctx, err, unreachable)
	}
	select {
	case b.extending <- struct{}{}:
		defer func() { <-b.extending }()
	case <-ctx.Done():
		return asAdapterError(ctx, ctx.Err(), unreachable)
	}
	if deadline.Equal(b.until) && b.alive() {
		return nil
	}
	b.until = time.Time{}
	if err := b.tellEnd(ctx, deadline); err != nil {
		return err
	}
	b.until = deadline
	return nil
}

// tellEnd moves the end of life in the daemon.
func (b *box) tellEnd(ctx context.Context, deadline time.Time) error {
	body, err := json.Marshal(struct {
		Deadline time.Time `json:"deadline"`
	}{deadline})
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the deadline cannot be written")
	}
	resp, err := b.call(ctx, http.MethodPut, envd.RouteDeadline, bytes.NewReader(body))
	if err != nil {
		return asAdapterError(ctx, err, unreachable)
	}
	return resp.Body.Close()
}

// maxEntries bounds one answer of Entries.
const maxEntries = 1000

// Entries returns what the daemon noted after an entry.
func (l *Local) Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error) {
	b, err := l.boxes.get(boxID)
	if err != nil {
		return nil, err
	}
	resp, err := b.call(ctx, http.MethodGet, envd.RouteJournal+"?after="+strconv.FormatUint(after, 10), nil)
	if err != nil {
		return nil, asAdapterError(ctx, err, unreachable)
	}
	defer func() { _ = resp.Body.Close() }()
	var entries []envd.JournalEntry
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 16<<20)).Decode(&entries); err != nil {
		return nil, asAdapterError(ctx, err, unreachable)
	}
	return entries[:min(len(entries), maxEntries)], nil
}
