package provider

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/isthmus/isthmus/adapters"
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
		t.Errorf("%s: %v (%v)", what, err, errors.Unwrap(err))
		t.FailNow()
	}
}

// equal fails the case when got is not want.
func equal[V any](t T, want, got V, what string) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// that fails the case when the condition does not hold.
func that(t T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// refused fails the case unless err is the contract's error, of this kind, with a message for the user.
func refused(t T, want adapters.Kind, err error, what string) {
	t.Helper()
	var typed *adapters.Error
	switch {
	case err == nil:
		t.Errorf("%s: it succeeded, want %s", what, want)
	case !errors.As(err, &typed):
		t.Errorf("%s: got %T (%v), which is not the contract's error", what, err, err)
	case typed.Kind != want:
		t.Errorf("%s: got %s (%v: %v), want %s", what, typed.Kind, err, typed.Err, want)
	case typed.Message == "":
		t.Errorf("%s: the error %s has no message", what, typed.Kind)
	}
}

// eventually asks until check holds or patience has passed.
func eventually(t T, patience time.Duration, check func() bool, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for wait := 10 * time.Millisecond; !check(); wait = min(2*wait, time.Second) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			t.Errorf("not within %s: %s", patience, what)
			return
		}
	}
}
