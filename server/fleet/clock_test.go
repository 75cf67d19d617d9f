package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Deadlines are times on the wall, as clients are told them. A clock that is set forward ends what is due by then and
// nothing else; one that is set back ends nothing, and the next look comes within a second all the same.
func TestTheReaperAndAClockThatIsSet(t *testing.T) {
	b := start(t, nil)
	short, long := b.create(request()), b.create(request())
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", short.ID, 10*time.Minute))
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", long.ID, 3*time.Hour))

	wait := b.fleet.reap(t.Context(), time.Now().Add(-24*time.Hour))
	require.LessOrEqual(t, wait, reapLook)
	require.Equal(t, 2, b.provider.count())

	wait = b.fleet.reap(t.Context(), time.Now().Add(time.Hour))
	require.LessOrEqual(t, wait, reapLook)
	b.gone(short.ID)
	_, err := b.fleet.Sandbox(t.Context(), "team", long.ID)
	require.NoError(t, err)
}
