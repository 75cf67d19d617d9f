package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVercelPools(t *testing.T) {
	c, err := Parse([]byte(`
pools:
- name: vercel
  provider: vercel
  credential: {env: VERCEL_TOKEN}
  vercel: {team: team_1, project: prj_1, plan: hobby, region: fra1, no_bake: true}
  templates: {base: "", node: team/project/node:24}
`))
	require.NoError(t, err)
	require.Equal(t, Vercel{Team: "team_1", Project: "prj_1", Plan: "hobby", Region: "fra1", NoBake: true}, c.Pools[0].Vercel)

	_, err = Parse([]byte(`
pools:
- {name: a, provider: vercel, vercel: {team: team_1}}
- {name: b, provider: local, vercel: {plan: pro}}
`))
	require.ErrorContains(t, err, "pools[0].vercel.project")
	require.ErrorContains(t, err, "pools[0].credential")
	require.ErrorContains(t, err, "pools[1].vercel")
	require.NotContains(t, err.Error(), "pools[0].vercel.team")
}
