// Package journal keeps the last things that happened in the daemon, for the facade to fetch: processes that
// started and ended, and warnings. It holds no output of a program and no secret.
package journal

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/isthmus/isthmus/envd"
)

const (
	// capacity is how many entries are kept; older ones are gone for a facade that did not fetch in time.
	capacity = 2048
	// maxField bounds each field, in bytes: a command may be a whole script.
	maxField = 200
)

// Journal is a bounded ring of entries. It is safe for use by several goroutines.
type Journal struct {
	mu   sync.Mutex
	ring []envd.JournalEntry
	last uint64
}

// New makes an empty journal.
func New() *Journal { return &Journal{} }

// Info notes an ordinary event with its details, as pairs of name and value.
func (j *Journal) Info(message string, pairs ...string) { j.add("info", message, pairs) }

// Warn notes something that is wrong but does not stop the daemon.
func (j *Journal) Warn(message string, pairs ...string) { j.add("warn", message, pairs) }

func (j *Journal) add(level, message string, pairs []string) {
	e := envd.JournalEntry{Time: time.Now().UTC(), Level: level, Message: bound(message)}
	for i := 0; i+1 < len(pairs); i += 2 {
		if e.Fields == nil {
			e.Fields = make(map[string]string, len(pairs)/2)
		}
		e.Fields[pairs[i]] = bound(pairs[i+1])
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e.Number = j.last
	if len(j.ring) < capacity {
		j.ring = append(j.ring, e)
		return
	}
	j.ring[(j.last-1)%capacity] = e
}

// After returns the kept entries whose number is larger than n, in order; never nil.
func (j *Journal) After(n uint64) []envd.JournalEntry {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := j.last - uint64(len(j.ring)) + 1
	from := max(first, n+1)
	if n >= j.last {
		return []envd.JournalEntry{}
	}
	entries := make([]envd.JournalEntry, 0, j.last-from+1)
	for number := from; number <= j.last; number++ {
		entries = append(entries, j.ring[(number-1)%capacity])
	}
	return entries
}

// bound cuts a text to its limit without breaking a character, and makes it valid UTF-8.
func bound(s string) string {
	if len(s) > maxField {
		cut := maxField
		for cut > maxField-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
