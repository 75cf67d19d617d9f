package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// noon is when the tests decide.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// can states features as verified.
func can(features ...adapters.Feature) adapters.Capabilities {
	all := adapters.Capabilities{}
	for _, f := range features {
		all[f] = adapters.Capability{Feature: f, Value: adapters.Yes, Source: "test", Evidence: adapters.Verified}
	}
	return all
}

// portable is what our envd gives wherever it runs.
func portable(more ...adapters.Feature) adapters.Capabilities {
	return can(append(more, adapters.FeatureExec, adapters.FeatureFiles, adapters.FeaturePTY, adapters.FeaturePorts)...)
}

// offer is a pool with the portable baseline and the template.
func offer(name string, change ...func(*Offer)) Offer {
	o := Offer{
		Pool:     Pool{Name: name, Provider: name, Isolation: Isolation{Level: "container"}, Capabilities: portable()},
		Template: &adapters.Template{ID: "t", Name: "base", Resources: adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 10240}},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// asks is a request with requirements as a header states them.
func asks(t testing.TB, line string) Request {
	t.Helper()
	r, err := Parse(Header, line, nil)
	require.NoError(t, err, line)
	r, err = Merge(Stated{Header, r})
	require.NoError(t, err, line)
	return Request{Template: "base", Timeout: 5 * time.Minute, Require: r}
}

// order decides and returns the names of the pools to try.
func order(t testing.TB, req Request, offers []Offer, s Settings) []string {
	t.Helper()
	plan, err := Decide(req, offers, noon(), s)
	require.NoError(t, err)
	return poolNames(plan)
}

func poolNames(p Plan) []string {
	names := []string{}
	for _, c := range p.Order {
		names = append(names, c.Pool)
	}
	return names
}

// unmetOf decides and returns the names of what one pool lacks.
func unmetOf(t testing.TB, req Request, offers []Offer, pool string) []string {
	t.Helper()
	plan, _ := Decide(req, offers, noon(), Settings{})
	for _, c := range plan.Decision.Candidates {
		if c.Pool == pool {
			return unmetNames(c.Unmet)
		}
	}
	t.Fatalf("pool %s is not in the decision", pool)
	return nil
}
