package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/fleet"
)

// Traffic for a paused sandbox wakes it when it could get in, and never else.
func TestTrafficWakes(t *testing.T) {
	const envd, traffic = "envd-token", "traffic-token"
	guarded := &fleet.Asleep{EnvdToken: envd, TrafficToken: traffic}
	for name, test := range map[string]struct {
		asleep  *fleet.Asleep
		port    string
		header  http.Header
		wakeErr error
		status  int
		woken   int64
	}{
		"envd with its token":        {guarded, envdPort, http.Header{"X-Access-Token": {envd}}, nil, 200, 1},
		"envd without a token":       {guarded, envdPort, nil, nil, 403, 0},
		"envd with another token":    {guarded, envdPort, http.Header{"X-Access-Token": {traffic}}, nil, 403, 0},
		"a port with its token":      {guarded, "8080", http.Header{"E2b-Traffic-Access-Token": {traffic}}, nil, 200, 1},
		"a port without a token":     {guarded, "8080", http.Header{"X-Access-Token": {envd}}, nil, 403, 0},
		"an open port":               {&fleet.Asleep{EnvdToken: envd}, "8080", nil, nil, 200, 1},
		"an open envd":               {&fleet.Asleep{}, envdPort, nil, nil, 200, 1},
		"a team that is full":        {&fleet.Asleep{}, "8080", nil, adapters.Errorf(adapters.KindTeamLimit, "full"), 429, 1},
		"a sandbox that is ending":   {&fleet.Asleep{}, "8080", nil, adapters.Errorf(adapters.KindPrecondition, "ending"), 409, 1},
		"one that is gone meanwhile": {&fleet.Asleep{}, "8080", nil, adapters.Errorf(adapters.KindNotFound, "gone"), 502, 1},
		"a pool that is away":        {&fleet.Asleep{}, "8080", nil, adapters.Errorf(adapters.KindUnavailable, "away"), 500, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			l.routeErr, l.wakeErr = test.asleep, test.wakeErr
			r := l.request(l.http1(), "GET", "/", test.port, nil)
			for key, values := range test.header {
				r.Header[key] = values
			}
			answer, body := l.do(l.http1(), r)
			require.Equal(t, test.status, answer.StatusCode, body)
			require.Equal(t, test.woken, l.woken.Load())
			if test.status == 403 {
				require.NotContains(t, body, "token-")
			}
		})
	}
}
