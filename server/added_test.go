package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/fleet"
)

// instant is a provider that has what it is asked for at once.
type instant struct {
	full
	boxes sync.Map
}

func (p *instant) Create(_ context.Context, spec adapters.Spec) (adapters.Box, error) {
	box := adapters.Box{ID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: spec.Envd.SandboxID, Alive: true}
	p.boxes.Store(spec.BoxID, box)
	return box, nil
}

func (p *instant) Destroy(_ context.Context, id string) error {
	p.boxes.Delete(id)
	return nil
}

func (p *instant) Reach(context.Context, string) (adapters.Endpoint, error) {
	return adapters.Endpoint{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:9"}}, nil
}

// BenchmarkAddedLatency is what the control plane adds to a create: against a backend that answers at once, beside
// the same request to a listener that does nothing but answer.
func BenchmarkAddedLatency(b *testing.B) {
	o := options(b)
	o.Log = slog.New(slog.DiscardHandler)
	o.Config.Limits.CallsPerSecond = 0 // none: one key makes all of them
	o.Pools = []fleet.Pool{{Name: "a", Provider: &instant{}}, {Name: "b", Provider: &full{}}}
	_, where := serve(b, o)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sandboxID":"i0"}`)
	}))
	b.Cleanup(bare.Close)
	var with, without []time.Duration
	for b.Loop() {
		without = append(without, timed(b, admin.Environment{APIURL: bare.URL, APIKey: where.APIKey}))
		with = append(with, timed(b, where))
	}
	slices.Sort(with)
	slices.Sort(without)
	for name, share := range map[string]int{"p10": 10, "p50": 50, "p99": 99} {
		at := len(with) * share / 100
		b.ReportMetric(float64(with[at].Microseconds()), name+"-µs")
		b.ReportMetric(float64(without[at].Microseconds()), name+"-bare-µs")
		b.ReportMetric(float64(with[at])/float64(without[at]), name+"-ratio")
	}
}

// timed is the time of one create. The sandbox is killed outside of it.
func timed(b *testing.B, where admin.Environment) time.Duration {
	b.Helper()
	began := time.Now()
	status, body := post(b, where, `{"templateID":"base"}`)
	took := time.Since(began)
	require.Equal(b, http.StatusCreated, status, body)
	var made struct {
		SandboxID string `json:"sandboxID"`
	}
	require.NoError(b, json.NewDecoder(strings.NewReader(body)).Decode(&made))
	if made.SandboxID == "i0" {
		return took
	}
	request, err := http.NewRequestWithContext(b.Context(), http.MethodDelete, where.APIURL+"/sandboxes/"+made.SandboxID, nil)
	require.NoError(b, err)
	request.Header.Set("X-API-Key", where.APIKey)
	response, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	require.NoError(b, response.Body.Close())
	return took
}
