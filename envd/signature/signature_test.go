package signature

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"

func TestSignVector(t *testing.T) {
	claim := Claim{Path: "hello.txt", User: "user", Operation: Read}
	require.Equal(t, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E", claim.Sign(token))
}

func TestCheck(t *testing.T) {
	now := time.Unix(1_700_000_000, 500)
	sign := func(c Claim) Claim { c.Signature = c.Sign(token); return c }
	at := func(s int64) *int64 { return &s }
	base := Claim{Path: "a", User: "user", Operation: Read}
	changed := func(change func(*Claim)) Claim { c := sign(base); change(&c); return c }

	tests := []struct {
		name  string
		claim Claim
		want  error
	}{
		{"valid without end", sign(base), nil},
		{"valid to the second", sign(Claim{Path: "a", Expiration: at(now.Unix())}), nil},
		{"expired", sign(Claim{Path: "a", Expiration: at(now.Unix() - 1)}), ErrExpired},
		{"expiration zero is an expiration", sign(Claim{Path: "a", Expiration: at(0)}), ErrExpired},
		{"missing", base, ErrMissing},
		{"other path", changed(func(c *Claim) { c.Path = "b" }), ErrInvalid},
		{"other user", changed(func(c *Claim) { c.User = "root" }), ErrInvalid},
		{"other operation", changed(func(c *Claim) { c.Operation = Write }), ErrInvalid},
		{"end added", changed(func(c *Claim) { c.Expiration = at(now.Unix() + 9) }), ErrInvalid},
		{"wrong and expired says wrong", Claim{Signature: "v1_x", Expiration: at(1)}, ErrInvalid},
		{"padding", changed(func(c *Claim) { c.Signature += "=" }), ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.ErrorIs(t, test.claim.Check(token, now), test.want)
		})
	}
}

func TestFromQuery(t *testing.T) {
	query := func(s string) url.Values {
		values, err := url.ParseQuery(s)
		require.NoError(t, err)
		return values
	}
	claim, err := FromQuery(http.MethodPost, query("path=a%2Fb&username=root&signature=v1_x&signature_expiration=7"))
	require.NoError(t, err)
	seven := int64(7)
	require.Equal(t, Claim{Path: "a/b", User: "root", Operation: Write, Expiration: &seven, Signature: "v1_x"}, claim)

	claim, err = FromQuery(http.MethodGet, nil)
	require.NoError(t, err)
	require.Equal(t, Claim{Operation: Read}, claim)

	_, err = FromQuery(http.MethodGet, query("signature_expiration=soon"))
	require.ErrorContains(t, err, "Invalid format for parameter signature_expiration: ")
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	claim := Claim{Path: "/home/user/hello.txt", User: "user", Operation: Read}
	claim.Signature = claim.Sign(token)
	require.Zero(t, testing.AllocsPerRun(100, func() { claim.Matches(token) }))
}

func BenchmarkMatches(b *testing.B) {
	claim := Claim{Path: "/home/user/hello.txt", User: "user", Operation: Read, Signature: "v1_x"}
	for b.Loop() {
		claim.Matches(token)
	}
}
