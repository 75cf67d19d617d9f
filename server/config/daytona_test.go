package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDaytonaPools(t *testing.T) {
	c, err := Parse([]byte(`
pools:
- name: daytona
  provider: daytona
  credential: {env: DAYTONA_API_KEY}
  isolation: vm
  daytona: {target: eu, no_bake: true}
  templates: {base: daytona-vm-small, python: "image:python:3.12"}
`))
	require.NoError(t, err)
	require.Equal(t, Daytona{Target: "eu", NoBake: true}, c.Pools[0].Daytona)

	_, err = Parse([]byte(`
pools:
- {name: a, provider: daytona, isolation: gvisor}
- {name: b, provider: local, daytona: {target: eu}}
`))
	require.ErrorContains(t, err, "pools[0].credential")
	require.ErrorContains(t, err, "pools[0].isolation")
	require.ErrorContains(t, err, "pools[1].daytona")
}
