package fleet

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
)

// foreign is a provider whose boxes speak envd themselves, on a server of its own.
type foreign struct {
	*fake
	address *url.URL
}

// Describe says what our envd would stand for elsewhere.
func (p foreign) Describe() adapters.Description {
	d := p.fake.Describe()
	for _, feature := range []adapters.Feature{adapters.FeatureExec, adapters.FeatureFiles} {
		d.Capabilities = append(d.Capabilities, adapters.Capability{Feature: feature, Value: adapters.Yes, Source: "the test", Evidence: adapters.Declared})
	}
	return d
}

func (p foreign) Native(ctx context.Context, id string) (adapters.Inner, error) {
	if _, err := p.Get(ctx, id); err != nil {
		return adapters.Inner{}, err
	}
	return adapters.Inner{
		ID: "inner-" + id, EnvdVersion: "9.9.9", EnvdToken: "their token", TrafficToken: "their traffic",
		Port: func(uint16) adapters.Endpoint { return adapters.Endpoint{URL: p.address} },
	}, nil
}

func (p foreign) Reach(ctx context.Context, id string) (adapters.Endpoint, error) {
	inner, err := p.Native(ctx, id)
	if err != nil {
		return adapters.Endpoint{}, err
	}
	return inner.Port(envd.Port), nil
}

func newForeign(t *testing.T) foreign {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, secret := range []string{envd.HeaderTransport, envd.HeaderControl} {
			if r.Header.Get(secret) != "" {
				t.Errorf("a secret of ours came to another server: %s", secret)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	inside := newFake()
	t.Cleanup(inside.health.Close)
	return foreign{inside, address}
}

func TestASandboxOnAnotherServer(t *testing.T) {
	p := newForeign(t)
	b := start(t, func(cfg *Config) { cfg.Pools[0].Provider = p })
	no := false
	req := request()
	req.Secure = true
	req.Network = store.Network{AllowPublicTraffic: &no, MaskRequestHost: "app:${PORT}"}
	sb := b.create(req)
	require.Equal(t, "9.9.9", sb.EnvdVersion, "clients go by the version that is there")
	spec := p.box(sb.ID).spec
	require.NotEmpty(t, spec.Envd.AccessToken, "it asks for a secure one")
	require.Equal(t, adapters.Network{Internet: true, PrivatePorts: true, RequestHost: "app:${PORT}"}, spec.Network)

	token, traffic := b.fleet.Tokens(sb)
	require.Equal(t, "their token", token)
	require.Equal(t, "their traffic", traffic)
	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	require.Equal(t, "inner-"+sb.ID, route.Inner.ID)
	require.Empty(t, route.Transport+route.Control+route.TrafficToken+route.MaskRequestHost)
	id, found := b.fleet.Match(t.Context(), func(_, token string) bool { return token == "their token" })
	require.True(t, found)
	require.Equal(t, sb.ID, id)

	sb.ID = "iunknown0000000000000"
	token, traffic = b.fleet.Tokens(sb)
	require.Empty(t, token+traffic, "never tokens that the server there does not know")
}

func TestALostAnswerOfAnotherServerIsAdopted(t *testing.T) {
	p := newForeign(t)
	p.after = func(context.Context, adapters.Spec) error {
		return adapters.Errorf(adapters.KindUnknownOutcome, "the answer was lost")
	}
	b := start(t, func(cfg *Config) { cfg.Pools[0].Provider = p })
	sb := b.create(request())
	require.Equal(t, 1, p.count())
	require.Equal(t, store.StateRunning, sb.State)
}
