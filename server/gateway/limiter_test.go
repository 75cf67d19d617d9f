package gateway

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimiter(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := newLimiter(5, 10, 100)
	l.now = func() time.Time { return now }
	guesser, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

	for range 10 {
		require.True(t, l.allows(guesser))
		l.note(guesser)
	}
	require.False(t, l.allows(guesser), "as many as may come at once")
	require.True(t, l.allows(other), "another address")
	now = now.Add(200 * time.Millisecond)
	require.True(t, l.allows(guesser), "one is paid off")
	l.note(guesser)
	require.False(t, l.allows(guesser))
	now = now.Add(time.Hour)
	require.True(t, l.allows(guesser))

	address := netip.MustParseAddr("10.0.0.0")
	for range 1000 {
		address = address.Next()
		l.note(address)
		require.LessOrEqual(t, len(l.debt), 100)
	}
	require.Contains(t, l.debt, address, "the newest is kept")
}

func TestAddressOf(t *testing.T) {
	tests := map[string]string{
		"192.0.2.1:1234":               "192.0.2.1",
		"[::ffff:192.0.2.1]:1234":      "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:1234":  "2001:db8:1:2::",
		"[fe80::1%eth0]:1234":          "fe80::",
		"@":                            "invalid IP",
		"":                             "invalid IP",
		"name.example:1":               "invalid IP",
		"[2001:db8:1:2:ffff::1]:55555": "2001:db8:1:2::",
	}
	for remote, want := range tests {
		require.Equal(t, want, addressOf(remote).String(), remote)
	}
}
