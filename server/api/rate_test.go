package api

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/translate"
)

// A key has its own allowance, is told when to come again, and does not lose by coming too early.
func TestCallers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newCallers(10, func() time.Time { return now })
	for range 10 * burstSeconds {
		require.NoError(t, c.admit("one"))
	}
	for range 5 {
		var failure *translate.Failure
		require.ErrorAs(t, c.admit("one"), &failure)
		require.Equal(t, http.StatusTooManyRequests, failure.Status)
		require.Equal(t, 100*time.Millisecond, failure.RetryAfter, "refused calls are not counted")
		require.Equal(t, translate.RetryYes, failure.Retry)
	}
	require.NoError(t, c.admit("another"))
	now = now.Add(100 * time.Millisecond)
	require.NoError(t, c.admit("one"))
	require.Error(t, c.admit("one"))
	now = now.Add(-time.Hour) // a clock that is set back does not lock anybody out for an hour
	var failure *translate.Failure
	if err := c.admit("one"); errors.As(err, &failure) {
		require.LessOrEqual(t, failure.RetryAfter, time.Second)
	}
}

func TestCallersAreForgotten(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newCallers(1, func() time.Time { return now })
	for i := range 3 * knownCallers {
		require.NoError(t, c.admit(fmt.Sprint(i)))
	}
	require.LessOrEqual(t, len(c.keys), knownCallers)
	require.NoError(t, newCallers(0, time.Now).admit("anybody"))
}
