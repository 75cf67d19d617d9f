package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/translate/placement"
)

func TestPools(t *testing.T) {
	config, err := Parse([]byte(`
pools:
- name: local
  provider: local
- name: cloud
  provider: e2b
  credential: {env: E2B_CLOUD_KEY}
  api_url: https://api.e2b.app
  isolation: microvm
  regions: [{name: us-west1, areas: [us]}]
  sizes: [{cpu: 2, memory_mb: 512}, {cpu: 8, memory_mb: 8192}]
  templates: {base: base}
  labels: [soc2]
  concurrency: 100
  rate: 1.5
  creates_at_once: 10
  create_time: 20s
  price: {billing: provisioned, cpu_hour: 0.0504, memory_gib_hour: 0.0162, disk_free_gib: 10, source: "https://e2b.dev/pricing", date: "2026-11-01"}
  weight: 2
  draining: true
  require: {pause: memory}
ranking: {rank: [cost, reliability], tolerance: {cost: 0.1}, weights: {startup: 2}}
classes: {ci: {rank: startup, cpu: "4"}}
require:
  keys: {build: {class: ci, pools: "local,cloud"}}
  templates: {desktop: {memory: 4GiB}}
`))
	require.NoError(t, err)
	pool := config.Pools[1]
	require.Equal(t, 20*time.Second, pool.CreateTime)
	facts := pool.Facts(placement.Pool{Name: "cloud", Provider: "e2b", MaxLife: placement.Milliseconds(time.Hour)})
	require.Equal(t, placement.Milliseconds(time.Hour), facts.MaxLife, "what is left out stays as the provider says")
	require.Equal(t, []placement.Region{{Name: "us-west1", Areas: []string{"us"}}}, facts.Regions)
	require.Equal(t, 8192, facts.Sizes[1].MemoryMB)
	require.InDelta(t, 0.0504, facts.Price.CPUHour, 0)
	require.InDelta(t, 10, facts.Price.DiskFreeGiB, 0)
	require.Equal(t, "memory", facts.Defaults.Pause)
	require.True(t, facts.Draining)
	require.Equal(t, []string{"cost", "reliability"}, config.Ranking.Settings().Rank)
	rules := config.Rules()
	require.Equal(t, 4, rules.Classes["ci"].CPU)
	require.Equal(t, []string{"startup"}, rules.Keys["build"].Rank, "a class stands for its requirements")
	require.Equal(t, 4096, rules.Templates["desktop"].MemoryMB)
}

func TestWithoutPoolsThereIsThisMachine(t *testing.T) {
	require.Equal(t, []Pool{{Name: "local", Provider: ProviderLocal}}, Default().AllPools())
}

func TestAllFaultsOfPoolsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`
pools:
- {name: a, provider: cloudy}
- {name: b, provider: e2b, key: e2b_secret}
- {name: c, provider: e2b, api_url: "https://user:hunter2@api.e2b.app", credential: {env: A, file: b}, price: {billing: weekly}}
- {name: c, provider: local, isolation: microvm, weight: -1, require: {regoin: eu}, rate: fast}
- {name: e, provider: vercel, credential: vercel-secret, vercel: [vercel-secret], templates: vercel-secret, labels: vercel-secret}
- {name: f, provider: modal, credential: {env: "ak-secret:as-secret"}}
- {name: d, provider: local, fault: /nowhere.yaml, regions: [eu], price: {cpu_hour: -1}}
ranking: {rank: [order, cost], tolerance: {price: 1}}
classes: {one: {class: two}, three: {cpu: many}}
require:
  keys: {k: {pools: nowhere}}
  templates: {t: {isolation: best}}
`))
	var faults Faults
	require.ErrorAs(t, err, &faults)
	var paths []string
	for _, fault := range faults {
		paths = append(paths, fault.Path)
	}
	require.Subset(t, paths, []string{
		"pools[0].provider", "pools[1].key", "pools[1].api_url", "pools[1].credential", "pools[2].api_url", "pools[2].credential",
		"pools[3].isolation", "pools[3].require", "pools[3].rate", "pools[4].credential", "pools[5].credential.env", "pools[6].fault", "pools[6].first_id", "pools[6].regions[0]", "pools",
		"ranking.rank", "ranking.tolerance.price", "classes.one", "classes.three", "require.keys.k", "require.templates.t",
	})
	for _, says := range []string{"billing \"weekly\"", "pool c is there twice", "weight must not be negative", "a price is negative", `"region" may be meant`} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "secret", "a key that was written here by mistake is not repeated")
}

func TestPoolsOfThisMachineShareNoUserID(t *testing.T) {
	config, err := Parse([]byte("local: {first_id: 1000000000}\npools:\n- {name: a, provider: local}\n- {name: b, provider: local, first_id: 1100000000}\n"))
	require.NoError(t, err)
	require.Equal(t, 1100000000-1, config.LastID(config.Pools[0]))
	require.Zero(t, config.LastID(config.Pools[1]))
	_, err = Parse([]byte("pools:\n- {name: a, provider: local}\n- {name: b, provider: local, first_id: 1879048193}\n"))
	require.ErrorContains(t, err, "pools[1].first_id: must lie")
	config, err = Parse([]byte("pools:\n- {name: a, provider: local}\n- {name: b, provider: local, isolation: gvisor}\n"))
	require.NoError(t, err, "under gVisor they have none of this machine's")
	require.Zero(t, config.LastID(config.Pools[0]))
}

func TestFaultPlanIsThere(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	require.NoError(t, os.WriteFile(plan, nil, 0o600))
	_, err := Parse([]byte("pools: [{name: a, provider: local, fault: " + plan + "}]"))
	require.NoError(t, err)
}
