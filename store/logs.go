package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// The bounds of a sandbox's log.
const (
	// LogsLife is how long an entry is kept, also after its sandbox died.
	LogsLife = 7 * 24 * time.Hour
	// LogsMax is the largest number of entries of one sandbox; the oldest go first.
	LogsMax = 10_000
	// logsTrimmed is what is left when the bound was passed, so that not every append has to trim.
	logsTrimmed = LogsMax - 500
	// logsPage is the largest number of entries of one answer.
	logsPage = 1_000
)

// Logs keeps entries as log/<sandbox>/<time>/<number>, and log.head/<sandbox>, which says whose they are.
type Logs struct {
	engine kv.Engine
}

const (
	logPrefix = "log/"
	logHead   = "log.head/"
)

// head is what is known of one log. Count may be too high when entries have expired.
type head struct {
	TeamID  string `json:"teamID"`
	Next    uint64 `json:"next"`
	Count   int    `json:"count"`
	Journal uint64 `json:"journal"` // the last number read from the daemon's journal
}

// Append adds entries to a sandbox's log; what is longer than an entry may be is cut. On a disk that is almost full it does not.
func (l Logs) Append(ctx context.Context, teamID, sandboxID string, entries ...LogEntry) error {
	if l.engine.Low() {
		return nil
	}
	return l.engine.Update(ctx, func(tx kv.Tx) error {
		h, err := readHead(tx, teamID, sandboxID)
		if err != nil {
			return err
		}
		return h.append(tx, sandboxID, entries)
	})
}

// AppendJournal adds entries that were read from the daemon's journal after the number from and up to the
// number to. When somebody else has read further meanwhile, nothing is added, nor on a disk that is almost full:
// added is then false, and reading on would read the same again. A few hundred kilobytes always fit: see Size.
func (l Logs) AppendJournal(ctx context.Context, teamID, sandboxID string, from, to uint64, entries []LogEntry) (added bool, _ error) {
	if l.engine.Low() {
		return false, nil
	}
	err := l.engine.Update(ctx, func(tx kv.Tx) error {
		added = false
		h, err := readHead(tx, teamID, sandboxID)
		if err != nil || h.Journal != from {
			return err
		}
		h.Journal, added = to, true
		return h.append(tx, sandboxID, entries)
	})
	return added && err == nil, err
}

// JournalRead returns the last number that was read from the daemon's journal.
func (l Logs) JournalRead(ctx context.Context, sandboxID string) (uint64, error) {
	h, err := l.head(ctx, sandboxID)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return h.Journal, err
}

// JournalAnew notes that the daemon's journal begins anew, because the daemon does.
func (l Logs) JournalAnew(ctx context.Context, teamID, sandboxID string) error {
	return l.engine.Update(ctx, func(tx kv.Tx) error {
		h, err := readHead(tx, teamID, sandboxID)
		if err != nil || h.Journal == 0 {
			return err
		}
		h.Journal = 0
		return h.append(tx, sandboxID, nil)
	})
}

// Team returns whose log it is, or ErrNotFound when there is none.
func (l Logs) Team(ctx context.Context, sandboxID string) (string, error) {
	h, err := l.head(ctx, sandboxID)
	return h.TeamID, err
}

// Read returns the entries that a query selects, in its order.
func (l Logs) Read(ctx context.Context, sandboxID string, q LogQuery) ([]LogEntry, error) {
	limit := logsPage
	if q.Limit > 0 && q.Limit < limit {
		limit = q.Limit
	}
	var entries []LogEntry
	err := l.engine.View(ctx, func(r kv.Reader) error {
		entries = nil
		for entry, err := range r.Scan(logRange(sandboxID, q)) {
			if err != nil {
				return err
			}
			var one LogEntry
			if err := decode(entry.Key, entry.Value, &one); err != nil {
				return err
			}
			if q.past(one.At) || len(entries) == limit {
				return nil
			}
			if q.matches(one) {
				entries = append(entries, one)
			}
		}
		return nil
	})
	return entries, err
}

func (l Logs) head(ctx context.Context, sandboxID string) (head, error) {
	var h head
	err := l.engine.View(ctx, func(r kv.Reader) (err error) {
		h, err = load[head](r, logHead+sandboxID)
		return err
	})
	return h, err
}

func readHead(tx kv.Tx, teamID, sandboxID string) (head, error) {
	h, err := load[head](tx, logHead+sandboxID)
	if errors.Is(err, ErrNotFound) {
		return head{TeamID: teamID}, nil
	}
	return h, err
}

func (h head) append(tx kv.Tx, sandboxID string, entries []LogEntry) error {
	for _, entry := range entries {
		key := logPrefix + sandboxID + "/" + stamp(entry.At) + "/" + number(h.Next)
		if err := save(tx, key, entry.Bounded(), LogsLife); err != nil {
			return err
		}
		h.Next++
		h.Count++
	}
	if h.Count > LogsMax {
		left, err := trim(tx, sandboxID)
		if err != nil {
			return err
		}
		h.Count = left
	}
	return save(tx, logHead+sandboxID, h, LogsLife)
}

// trim removes the oldest entries and returns how many are left.
func trim(tx kv.Tx, sandboxID string) (int, error) {
	var keys []string
	for entry, err := range tx.Scan(kv.Range{Prefix: logPrefix + sandboxID + "/", KeysOnly: true}) {
		if err != nil {
			return 0, err
		}
		keys = append(keys, entry.Key)
	}
	drop := max(len(keys)-logsTrimmed, 0)
	for _, key := range keys[:drop] {
		if err := tx.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(keys) - drop, nil
}

// logRange starts the scan at the bound that comes first in the direction of the query.
func logRange(sandboxID string, q LogQuery) kv.Range {
	r := kv.Range{Prefix: logPrefix + sandboxID + "/", Reverse: q.Backward}
	switch {
	case q.Backward && !q.To.IsZero():
		r.From = r.Prefix + stamp(q.To) + "/" + number(^uint64(0))
	case !q.Backward && !q.From.IsZero():
		r.From = r.Prefix + stamp(q.From)
	}
	return r
}

// past reports whether a time lies behind the bound at which the scan ends.
func (q LogQuery) past(at time.Time) bool {
	if q.Backward {
		return !q.From.IsZero() && at.Before(q.From)
	}
	return !q.To.IsZero() && at.After(q.To)
}

func (q LogQuery) matches(e LogEntry) bool {
	return weight(e.Level) >= weight(q.MinLevel) && strings.Contains(e.Message, q.Search)
}

// weight orders levels; one that is not known weighs like info.
func weight(level string) int {
	switch level {
	case "", LevelDebug:
		return 0
	case LevelWarn:
		return 2
	case LevelError:
		return 3
	}
	return 1
}
