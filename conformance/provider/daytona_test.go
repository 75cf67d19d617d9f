//go:build linux

package provider_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/daytona"
	"github.com/isthmus/isthmus/conformance/provider"
	simulator "github.com/isthmus/isthmus/conformance/simulators/daytona"
)

// TestDaytona runs the suite on the sandboxes of a simulated Daytona.
func TestDaytona(t *testing.T) {
	o := outside(t)
	_, address := openDaytona(t, o, nil, func(h http.Handler) http.Handler { return h })
	open := daytonaPlace(t, address, daytona.ClassContainer)
	p, err := open()
	require.NoError(t, err)
	run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, Outside: o.Outside, AtOnce: 4, Soon: late, Simulated: true})
}

// TestDaytonaMachines runs what is different of virtual machines: they are paused with their memory.
func TestDaytonaMachines(t *testing.T) {
	_, address := openDaytona(t, nearby{}, nil, func(h http.Handler) http.Handler { return h })
	open := daytonaPlace(t, address, daytona.ClassVM)
	p, err := open()
	require.NoError(t, err)
	run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, AtOnce: 2, Soon: late, Simulated: true},
		"what it says of itself", "from create to destroy", "pause and resume of files", "pause and resume of memory",
		"the end of a paused box", "a restart while paused", "what it says of pauses")
}

// daytonaPlace opens the adapter for a simulator.
func daytonaPlace(t *testing.T, address, class string) func() (adapters.Provider, error) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return func() (adapters.Provider, error) {
		place, err := daytona.New(daytona.Config{
			APIURL: address + "/api", Key: func() (string, error) { return "dtn_simulated", nil }, Class: class, Envd: envdProgram, Logger: log,
		})
		return bootstrap.New(place, bootstrap.Config{Secrets: secrets, Envd: envdProgram, Logger: log}), err
	}
}

// openDaytona starts a simulator, behind a handler around it, and returns its address. It must leave nothing.
func openDaytona(t *testing.T, world nearby, change func(*simulator.Config), around func(http.Handler) http.Handler) (*simulator.Simulator, string) {
	t.Helper()
	c := simulator.Config{Cloud: cloud(t, 0x52000000, world), Limits: simulator.Limits{CPU: 100, Memory: 100, Disk: 300}}
	if change != nil {
		change(&c)
	}
	s := simulator.New(c)
	server := httptest.NewServer(around(s))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		require.NoError(t, s.Close())
	})
	return s, server.URL
}
