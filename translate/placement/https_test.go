package placement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// TestHeadersOverTLSAlone: a place that adds headers to HTTPS requests only meets header rules where somebody has said
// that this is enough.
func TestHeadersOverTLSAlone(t *testing.T) {
	secure := capable(adapters.FeatureInjectHeaders, "https")
	whole := capable(adapters.FeatureInjectHeaders, adapters.Yes)
	said := pool(func(p *Pool) { p.Defaults = &Requirements{Network: []string{injectHTTPS}} })
	for name, row := range map[string]struct {
		line    string
		offered []func(*Offer)
		refusal string
	}{
		"nobody said so":    {offered: []func(*Offer){secure}, refusal: "a lacks network.inject_headers (https only), which network.rules needs"},
		"the program did":   {line: "network=inject_headers_https", offered: []func(*Offer){secure}},
		"the operator did":  {offered: []func(*Offer){secure, said}},
		"all requests":      {offered: []func(*Offer){whole}},
		"none":              {line: "network=inject_headers_https", refusal: "network.inject_headers_https"},
		"none, and said so": {offered: []func(*Offer){said}, refusal: "network.inject_headers_https"},
	} {
		t.Run(name, func(t *testing.T) {
			request := asks(t, row.line)
			request.Network.RuleHosts = []string{"a.example"}
			_, err := Decide(request, []Offer{offer("a", row.offered...)}, noon(), Settings{})
			if row.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.refusal)
		})
	}
}

func TestNewHeaderRulesOfARunningSandbox(t *testing.T) {
	rules := store.Network{RuleHosts: []string{"a.example"}}
	secure := adapters.Capabilities{adapters.FeatureInjectHeaders: {Feature: adapters.FeatureInjectHeaders, Value: "https"}}
	require.Equal(t, []string{"inject_headers"}, LacksForNetwork(rules, store.Network{}, secure))
	require.Empty(t, LacksForNetwork(rules, rules, secure), "that was enough when it was made")
	require.NotEmpty(t, LacksForNetwork(rules, rules, adapters.Capabilities{}))
}
