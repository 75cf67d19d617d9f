package server

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/fleet"
)

// meanwhile is a full provider that something happens at before it says so.
type meanwhile struct {
	full
	happens func() error
}

func (p meanwhile) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if err := p.happens(); err != nil {
		return adapters.Box{}, err
	}
	return p.full.Create(ctx, spec)
}

// Whether a caller may have a sandbox is asked again before each further pool: what was taken away while the first one
// was tried does not reach the second.
func TestAllowedAgainBeforeTheNextPool(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(o Options, s *Server) error
		status  int
		says    string
	}{
		"nothing happens": {func(Options, *Server) error { return nil }, http.StatusCreated, `"sandboxID"`},
		"the key is revoked": {func(o Options, _ *Server) error {
			keys, err := o.Store.Keys.List(t.Context())
			if err != nil {
				return err
			}
			return o.Store.Keys.Revoke(t.Context(), keys[0].ID)
		}, http.StatusUnauthorized, "not known here"},
		"the key's policy changes": {func(o Options, s *Server) error {
			keys, err := o.Store.Keys.List(t.Context())
			if err != nil {
				return err
			}
			changed := o.Config
			changed.Require.Keys = map[string]map[string]string{keys[0].ID: {"isolation": "microvm"}}
			s.rules.Store(changed.Rules())
			return nil
		}, http.StatusServiceUnavailable, "was changed while the sandbox was being made"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			var s *Server
			second := &instant{}
			o.Pools = []fleet.Pool{
				{Name: "first", Provider: meanwhile{happens: func() error { return c.happens(o, s) }}},
				{Name: "second", Provider: second},
			}
			s, where := serve(t, o)
			status, body := post(t, where, `{"templateID":"base"}`)
			require.Equal(t, c.status, status, body)
			require.Contains(t, body, c.says)
			made := 0
			second.boxes.Range(func(any, any) bool { made++; return true })
			require.Equal(t, status == http.StatusCreated, made == 1)
			records, err := o.Store.Sandboxes.All(t.Context())
			require.NoError(t, err)
			require.Len(t, records, made)
		})
	}
}
