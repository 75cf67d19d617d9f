package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
)

// The loggers of log entries.
const (
	loggerEnvd      = "envd"
	loggerLifecycle = "lifecycle"
)

// The time that reading a journal may take, and before a kill, where it holds up the end.
const (
	journalTime   = 2 * time.Second
	lastWordsTime = 300 * time.Millisecond
)

// Logs returns entries of a sandbox of the team, also after it died. What envd noted up to now is included
// while it lives.
func (f *Fleet) Logs(ctx context.Context, teamID, id string, q store.LogQuery) ([]store.LogEntry, error) {
	team, err := f.store.Logs.Team(ctx, id)
	if err != nil {
		return nil, storeError(id, err)
	}
	if team != teamID {
		return nil, notFound(id)
	}
	if one := f.homes.get(id); one != nil {
		f.collect(ctx, one, journalTime)
	}
	entries, err := f.store.Logs.Read(ctx, id, q)
	return entries, storeError(id, err)
}

// What is written of a journal at once. Written down, a text may be six times as long.
const (
	portionEntries = 100
	portionBytes   = 96 << 10
)

// note writes a lifecycle event. A log that cannot be written never fails what it is about.
func (f *Fleet) note(ctx context.Context, sb store.Sandbox, message string, fields map[string]string) {
	entry := store.LogEntry{At: time.Now().UTC(), Level: store.LevelInfo, Logger: loggerLifecycle, Message: message, Fields: fields}
	if err := f.store.Logs.Append(ctx, sb.TeamID, sb.ID, entry); err != nil {
		f.log.Warn("a log entry is lost", "sandbox", sb.ID, "message", message, "err", err)
	}
}

// lastWords reads the journal once more before the box is destroyed.
func (f *Fleet) lastWords(ctx context.Context, one *home) { f.collect(ctx, one, lastWordsTime) }

// collect copies what envd has noted since the last time. A box that does not answer keeps its journal for
// the next time.
func (f *Fleet) collect(ctx context.Context, one *home, within time.Duration) {
	if one.pool.journal == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	one.reading.Lock()
	defer one.reading.Unlock()
	for {
		more, err := f.collectPage(bounded, one)
		if err != nil && !errors.Is(err, context.Canceled) {
			f.log.Debug("a journal could not be read", "sandbox", one.id, "err", err)
		}
		if err != nil || !more {
			return
		}
	}
}

func (f *Fleet) collectPage(ctx context.Context, one *home) (more bool, _ error) {
	from, err := f.store.Logs.JournalRead(ctx, one.id)
	if err != nil {
		return false, err
	}
	page, err := one.pool.journal.Entries(ctx, one.boxID, from)
	if err != nil || len(page) == 0 {
		return false, err
	}
	for len(page) > 0 {
		entries := portion(page)
		last := page[len(entries)-1].Number
		if last <= from {
			return false, errors.New("the journal goes backwards")
		}
		added, err := f.store.Logs.AppendJournal(ctx, one.team, one.id, from, last, entries)
		if err != nil || !added {
			return false, err // the next look goes on
		}
		from, page = last, page[len(entries):]
	}
	return true, nil
}

// portion returns the first entries of a page, as many as surely fit in one transaction. A page has at least one.
func portion(page []envd.JournalEntry) (entries []store.LogEntry) {
	size := 0
	for _, e := range page[:min(len(page), portionEntries)] {
		entry := store.LogEntry{At: e.Time.UTC(), Level: e.Level, Logger: loggerEnvd, Message: e.Message, Fields: e.Fields}.Bounded()
		size += entry.Size()
		if len(entries) > 0 && size > portionBytes {
			break
		}
		entries = append(entries, entry)
	}
	return entries
}
