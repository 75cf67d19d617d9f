package main

import (
	"errors"
	"fmt"

	"github.com/isthmus/isthmus/conformance/simulators/daytona"
)

// simulateDaytona makes a cloud that speaks Daytona's API v0. It is not bounded by the first tier's quotas, so that a
// machine decides how much it holds; what goes wrong is chosen by requests to /_simulator/faults.
func simulateDaytona(s simulation) (simulator, error) {
	if s.plan != "" {
		return simulator{}, errors.New("the simulated Daytona has no plans: leave --plan away")
	}
	const plenty = 1000
	server := daytona.New(daytona.Config{
		Cloud: s.cloud, Key: s.token, Limits: daytona.Limits{CPU: plenty, Memory: plenty, Disk: plenty, SandboxCPU: 8, SandboxMemory: 16, SandboxDisk: 20},
	})
	pool := fmt.Sprintf(`# DAYTONA_API_KEY=%s
pools:
- name: daytona
  provider: daytona
  api_url: %s/api
  credential: {env: DAYTONA_API_KEY}
  templates: {base: daytona-medium}
# What goes wrong: curl %[2]s/_simulator/faults -d '{"fault": "capacity", "operation": "create", "times": 3}'
`, s.token, s.url)
	return simulator{serve: serveHTTP(server), pool: pool, close: server.Close}, nil
}
