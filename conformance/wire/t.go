package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// T is what a case needs of its runner. *testing.T is one.
type T interface {
	// Helper marks the calling function as one that only reports.
	Helper()
	// Logf notes something that is shown when the case fails.
	Logf(format string, args ...any)
	// Errorf fails the case, which goes on.
	Errorf(format string, args ...any)
	// FailNow fails the case and ends its goroutine.
	FailNow()
	// Context ends when the case has ended.
	Context() context.Context
}

// must ends the case when err is set; what says what was being done.
func must(t T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		t.FailNow()
	}
}

// equal fails the case when got is not want.
func equal[V any](t T, want, got V, what string) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// that fails the case when the condition does not hold.
func that(t T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// decode reads one JSON value into V, ending the case when it is not one.
func decode[V any](t T, text []byte) V {
	t.Helper()
	var value V
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("the answer is not the JSON that was expected: %v\n%s", err, clip(text))
		t.FailNow()
	}
	return value
}

// encode is the JSON text of a value that can always be encoded.
func encode(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("wire: a case holds a value that JSON has no form for: %v", err))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// clip shortens a body for a message.
func clip(text []byte) string {
	const enough = 600
	if len(text) > enough {
		return string(text[:enough]) + "…"
	}
	return string(text)
}
