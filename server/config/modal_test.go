package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModalPools(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, nil, 0o600))
	c, err := Parse([]byte(`
pools:
- name: modal
  provider: modal
  credential: {env: MODAL_TOKEN}
  modal: {app: sandboxes, environment: main, regions: [us-east], gpus: [t4], no_bake: true, authority: ` + authority + `}
  templates: {base: "", python: "python:3.12"}
`))
	require.NoError(t, err)
	want := Modal{App: "sandboxes", Environment: "main", Regions: []string{"us-east"}, GPUs: []string{"t4"}, NoBake: true, Authority: authority}
	require.Equal(t, want, c.Pools[0].Modal)

	_, err = Parse([]byte(`
pools:
- {name: a, provider: modal, sandbox_url: "https://example.com"}
- {name: c, provider: modal, modal: {authority: /nowhere.pem}}
- {name: b, provider: local, modal: {app: x}}
`))
	require.ErrorContains(t, err, "pools[0].credential")
	require.ErrorContains(t, err, "pools[0].sandbox_url")
	require.ErrorContains(t, err, "pools[2].modal")
	require.ErrorContains(t, err, "pools[1].modal.authority: names a file that cannot be read")
}
