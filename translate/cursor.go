package translate

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/isthmus/isthmus/store"
)

// ascendingMark ends the cursors of lists in ascending order.
const ascendingMark = "__asc"

// Cursor writes the place where the next page starts: base64url of time, id and order.
func Cursor(place store.SandboxCursor, ascending bool) string {
	text := place.StartedAt.UTC().Format(time.RFC3339Nano) + "__" + place.ID
	if ascending {
		text += ascendingMark
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseCursor reads a cursor. One of a list in the other order is refused: its pages would overlap.
func parseCursor(token string, ascending bool) (*store.SandboxCursor, error) {
	refused := invalid("nextToken is not a token of this list: pass X-Next-Token of the page before unchanged, with the same order")
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(token, "="))
	if err != nil {
		return nil, refused
	}
	place, marked := strings.CutSuffix(string(text), ascendingMark)
	at, id, found := strings.Cut(place, "__")
	started, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !found || marked != ascending || !isSandboxID(id) {
		return nil, refused
	}
	return &store.SandboxCursor{StartedAt: started, ID: id}, nil
}
