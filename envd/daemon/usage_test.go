package daemon_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/envd"
)

func TestUsageIsForTheFacadeAlone(t *testing.T) {
	r := run(t, envd.Config{Control: "ctl"})
	require.Equal(t, 404, ask(t, "GET", r.facade+envd.RouteUsage, "").status)
	require.Equal(t, 404, ask(t, "GET", r.loopback+envd.RouteUsage, "", envd.HeaderControl, "ctl").status)
	got := ask(t, "GET", r.facade+envd.RouteUsage, "", envd.HeaderControl, "ctl")
	require.Equal(t, 200, got.status)
	var u envd.Usage
	require.NoError(t, json.Unmarshal([]byte(got.body), &u))
	require.WithinDuration(t, time.Now(), u.At, time.Minute)
	for name, figure := range map[string]int64{
		"cpu count": int64(u.CPUCount), "cpu time": int64(u.CPUTime), "memory": int64(u.MemTotal), "used memory": int64(u.MemUsed), "disk": int64(u.DiskTotal),
	} {
		require.Positive(t, figure, name)
	}
	require.NotEmpty(t, u.Kernel)
	require.NotEmpty(t, u.BootID)
	require.WithinRange(t, u.Booted, time.Unix(1, 0), time.Now())
	require.False(t, u.GVisor, "this test runs on Linux itself")
}

// TestASandboxBehindAnotherFacade has programs know the sandbox by the id that its clients use.
func TestASandboxBehindAnotherFacade(t *testing.T) {
	r := run(t, envd.Config{SandboxID: "inner", TemplateID: "base", EnvVars: map[string]string{"E2B_SANDBOX_ID": "outer"}})
	require.JSONEq(t, `{"E2B_SANDBOX":"true","E2B_SANDBOX_ID":"outer","E2B_TEMPLATE_ID":"base"}`, ask(t, "GET", r.facade+"/envs", "").body)
}
