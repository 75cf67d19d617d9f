package e2b

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/envd"
)

// lifecycle is the logger of a server's own entries about the sandbox: we have our own.
const lifecycle = "lifecycle"

// logged is an entry of the server's log.
type logged struct {
	Timestamp time.Time         `json:"timestamp"`
	Level     string            `json:"level"`
	Message   string            `json:"message"`
	Fields    map[string]string `json:"fields"`
}

// Entries returns what the server has logged. An entry's number is its time in nanoseconds, or the number
// before it and one more: the server gives none, and reading on from a millisecond gives the same ones again.
func (p *Provider) Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error) {
	inner, err := p.innerOf(ctx, boxID)
	if err != nil {
		return nil, err
	}
	query := url.Values{"direction": {"forward"}, "limit": {"1000"}}
	if after > 0 {
		query.Set("cursor", strconv.FormatUint(after/uint64(time.Millisecond), 10))
	}
	var answer struct {
		Logs []logged `json:"logs"`
	}
	if _, err := p.api.send(ctx, request{method: http.MethodGet, path: "/v2/sandboxes/" + inner + "/logs", query: query, into: &answer}); err != nil {
		return nil, p.lost(boxID, err)
	}
	return numbered(answer.Logs, after), nil
}

func numbered(logs []logged, after uint64) []envd.JournalEntry {
	var entries []envd.JournalEntry
	var last uint64
	for _, l := range logs {
		number := max(uint64(max(0, l.Timestamp.UnixNano())), last+1)
		last = number
		if number <= after || l.Fields["logger"] == lifecycle {
			continue
		}
		entries = append(entries, envd.JournalEntry{Number: number, Time: l.Timestamp, Level: l.Level, Message: l.Message, Fields: l.Fields})
	}
	return entries
}
