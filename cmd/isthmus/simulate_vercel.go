package main

import (
	"fmt"
	"slices"

	"github.com/isthmus/isthmus/conformance/simulators/vercel"
)

// The account of the simulated Vercel.
const (
	simulatedTeam    = "team_simulated"
	simulatedProject = "prj_simulated"
)

// simulateVercel makes a cloud that speaks Vercel Sandbox's protocol. Its ports have names below vercel.run, which
// nobody resolves: a pool reaches them by sandbox_url.
func simulateVercel(s simulation) (simulator, error) {
	var plan vercel.Plan
	if s.plan != "" {
		at := slices.IndexFunc(vercel.Plans(), func(p vercel.Plan) bool { return p.Name == s.plan })
		if at < 0 {
			return simulator{}, fmt.Errorf("there is no plan %q of Vercel: there are hobby, pro and enterprise", s.plan)
		}
		plan = vercel.Plans()[at]
	}
	server := vercel.New(vercel.Config{
		Cloud: s.cloud, Token: s.token, Team: simulatedTeam, Project: simulatedProject, Plan: plan, Scheme: "http",
	})
	pool := fmt.Sprintf(`# VERCEL_TOKEN=%s
pools:
- name: vercel
  provider: vercel
  api_url: %s/api
  sandbox_url: %[2]s
  vercel: {team: %s, project: %s}
  credential: {env: VERCEL_TOKEN}
  templates: {base: ""}
`, s.token, s.url, simulatedTeam, simulatedProject)
	return simulator{serve: serveHTTP(server), pool: pool, close: server.Close}, nil
}
