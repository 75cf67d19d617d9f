package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse reads whatever calls itself a configuration. What is accepted is accepted again, and says the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "listen: 127.0.0.1:1\n", "limits: {longest_life: 36h, cpu: -1}", "pools: [{name: a, provider: local}]",
		"pools:\n- {name: a, provider: e2b, credential: {env: K}, price: {billing: x}}\n", "a: &a [*a]", "- x", "{", "local: {warm: {base: 1e9}}",
		"ranking: {rank: [cost], tolerance: {cost: .nan}}", "--- {}\n--- {}", "classes: {c: {cpu: \"4\"}}\nrequire: {keys: {k: {class: c}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		_ = c.Check() // its verdict is its own; it must come to one
		again, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
