package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

// operatorOf serves with two pools, of which one can be drained by a reload, and returns the operator's client.
func operatorOf(t *testing.T) (*Server, admin.Environment, *admin.Client) {
	t.Helper()
	o := options(t)
	first, second := &full{}, &full{}
	pools := func(drain bool) []fleet.Pool {
		facts := placement.FromDescription("first", first.Describe(), adapters.CapabilitiesOf(first))
		facts.Draining, facts.Labels = drain, []string{"hipaa"}
		return []fleet.Pool{{Name: "first", Provider: first, Facts: facts}, {Name: "second", Provider: second}}
	}
	o.Pools = pools(false)
	o.Config.Require.Keys = map[string]map[string]string{"ci": {"labels": "hipaa"}}
	var s *Server
	o.Reload = func(ctx context.Context) ([]string, error) {
		c := o.Config
		c.Classes = map[string]map[string]string{"ci": {"labels": "hipaa"}}
		return []string{"listen"}, s.Reload(ctx, c, pools(true))
	}
	s, where := serve(t, o)
	client, err := admin.Dial(t.Context(), o.Config.Data)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return s, where, client
}

func TestPlanSaysWhatACreateWouldDo(t *testing.T) {
	_, _, client := operatorOf(t)
	planned, err := client.Plan(t.Context(), admin.NewPlan{Require: "labels=hipaa"})
	require.NoError(t, err)
	require.Empty(t, planned.Refusal)
	require.Equal(t, 1, planned.Decision.Candidates[0].Place)
	require.Equal(t, "labels", planned.Decision.Candidates[1].Unmet[0].Requirement)
	planned, err = client.Plan(t.Context(), admin.NewPlan{Metadata: map[string]string{"isthmus:isolation": "microvm"}})
	require.NoError(t, err)
	require.Contains(t, planned.Refusal, "second lacks isolation=microvm")
	_, err = client.Plan(t.Context(), admin.NewPlan{Require: "colour=red"})
	require.ErrorContains(t, err, `"colour"`)
}

func TestPlanHoldsThePolicyOfAKey(t *testing.T) {
	_, _, client := operatorOf(t)
	_, err := client.Plan(t.Context(), admin.NewPlan{Key: "ci"})
	require.ErrorContains(t, err, "there is no key ci")
	made, err := client.CreateKey(t.Context(), admin.NewKey{Name: "ci"})
	require.NoError(t, err)
	for _, key := range []string{made.ID, "ci"} {
		planned, err := client.Plan(t.Context(), admin.NewPlan{Key: key})
		require.NoError(t, err)
		require.Equal(t, "labels", planned.Decision.Candidates[1].Unmet[0].Requirement, "its policy is stated by its name")
	}
	planned, err := client.Plan(t.Context(), admin.NewPlan{})
	require.NoError(t, err)
	require.Empty(t, planned.Decision.Candidates[1].Unmet)
}

func TestReloadOverTheSocket(t *testing.T) {
	_, _, client := operatorOf(t)
	_, err := client.Plan(t.Context(), admin.NewPlan{Require: "class=ci"})
	require.ErrorContains(t, err, "no workload class")
	waiting, err := client.Reload(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"listen"}, waiting)
	pools, err := client.Pools(t.Context())
	require.NoError(t, err)
	require.True(t, pools[0].Draining)
	require.False(t, pools[1].Draining)
	require.NotEmpty(t, pools[1].Capabilities)
	planned, err := client.Plan(t.Context(), admin.NewPlan{Require: "class=ci"})
	require.NoError(t, err)
	require.Contains(t, planned.Refusal, "draining")
}

func TestFiguresOfPools(t *testing.T) {
	s, where, _ := operatorOf(t)
	status, body := post(t, where, `{"templateID":"base"}`)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, `"error_code":"no_eligible_provider"`)
	require.Contains(t, body, `"details":{"attempts":[{`)
	require.Contains(t, body, "first: this machine is full (capacity); second: this machine is full (capacity)")
	response, err := http.Get("http://" + s.operator.Addr().String() + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	for _, line := range []string{`isthmus_pool_attempts_total{pool="first",outcome="capacity"} 1`, `isthmus_pool_breaker{pool="second"} 0`,
		`isthmus_pool_healthy{pool="second"} 1`} {
		require.Contains(t, string(text), line)
	}
}

// post asks for a sandbox.
func post(t testing.TB, where admin.Environment, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where.APIURL+"/v2/sandboxes", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("X-API-Key", where.APIKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(text)
}
