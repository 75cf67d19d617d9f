package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testPowers shows both clients what the pool of this machine declares of pause, snapshots and live network rules: what
// is declared must work, everything else must be refused by name.
func testPowers(t *testing.T) { testPowersOf(t, settings{}) }

// testPowersOf does so for the first pool of any facade.
func testPowersOf(t *testing.T, s settings) {
	t.Helper()
	f := newFacade(t, s)
	powers := f.powers(t)
	t.Logf("declared: %s", powers)
	f.told = append(f.told, "ISTHMUS_TEST_POWERS="+powers)
	suite(t, f, top("conformance", "sdk", "python"), python(), "-m", "pytest", "-q", "--color=no", "powers")
	suite(t, f, top("conformance", "sdk", "js"), "node", "--test", "--test-reporter=spec", "powers/")
	require.NotContains(t, f.output.String(), "conformance-secret-", "a header of network.rules is in the log")
}

// powers is what the facade's first pool declares, as the suites read it.
func (f *facade) powers(t *testing.T) string {
	t.Helper()
	out, err := f.isthmus("pools", "--json")
	require.NoError(t, err, out)
	var pools []struct {
		Capabilities map[string]struct{ Value string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &pools), out)
	require.NotEmpty(t, pools)
	declared := []string{"nothing"}
	for _, feature := range []string{"pause", "snapshot", "live_network", "allow_cidrs", "egress_lists", "inject_headers"} {
		switch value := pools[0].Capabilities[feature].Value; value {
		case "", "no", "none":
		default:
			declared = append(declared, feature+"="+value)
		}
	}
	return strings.Join(declared, " ")
}
