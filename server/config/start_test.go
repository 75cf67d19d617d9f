package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAReloadLeavesIsNamed(t *testing.T) {
	parse := func(text string) Config {
		c, err := Parse([]byte(text))
		require.NoError(t, err)
		return c
	}
	started := parse("local: {allow_private: [10.0.0.0/8]}\n")
	require.Empty(t, NeedsStart(started, parse("local: {allow_private: [10.0.0.0/8]}\n")))
	require.Empty(t, NeedsStart(started, parse(`
local: {allow_private: [10.0.0.0/8], warm: {base: 5}}
pools: [{name: local, provider: local, draining: true}]
ranking: {rank: [cost]}
classes: {ci: {rank: startup}}
require: {templates: {base: {cpu: "2"}}}
`)), "these are put in place")
	require.Equal(t, []string{"listen", "domain", "operator.listen", "limits.calls_per_second", "local.allow_private"},
		NeedsStart(started, parse("listen: 127.0.0.1:1\ndomain: a.example\noperator: {listen: \"127.0.0.1:2\"}\nlimits: {calls_per_second: 7}\n")))
}
