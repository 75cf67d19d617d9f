package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAClaimCannotTakeIsAFault(t *testing.T) {
	c, err := Parse([]byte(`
pools:
- name: cluster
  provider: kubernetes
  templates: {base: image}
  kubernetes: {agent_sandbox: true, envd_image: envd, warm: {base: 2}}
`))
	require.NoError(t, err)
	require.True(t, c.Pools[0].Kubernetes.AgentSandbox)

	_, err = Parse([]byte(`
pools:
- name: cluster
  provider: kubernetes
  templates: {base: image}
  kubernetes: {agent_sandbox: true, storage_class: fast, policy_probe: "192.0.2.1:80", any_image: true, delivery: copy}
`))
	for _, field := range []string{"storage_class", "policy_probe", "any_image", "delivery"} {
		require.ErrorContains(t, err, "pools[0].kubernetes."+field)
	}
}
