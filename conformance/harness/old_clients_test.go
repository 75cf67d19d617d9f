package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// family is one client in the versions that are still in use.
type family struct {
	Name, Program, Package string
	Versions               []string
}

// oldClient is one version of a client.
type oldClient struct {
	family  family
	version string
}

// finding is how one client did in one area.
type finding struct {
	Area, Result, Detail string
}

// Results that a program reports.
const (
	resultPassed = "passed"
	resultAbsent = "absent"
)

// oldClients reads which clients there are.
func oldClients() ([]oldClient, error) {
	text, err := os.ReadFile(top("conformance", "sdk", "old", "versions.json"))
	if err != nil {
		return nil, err
	}
	var families []family
	if err := json.Unmarshal(text, &families); err != nil {
		return nil, fmt.Errorf("versions.json: %w", err)
	}
	var all []oldClient
	for _, one := range families {
		for _, version := range one.Versions {
			all = append(all, oldClient{one, version})
		}
	}
	return all, nil
}

// folder is where the client is installed.
func (c oldClient) folder() string { return top(".tmp", "clients", c.family.Program+"-"+c.version) }

// run asks the client for every area.
func (c oldClient) run(ctx context.Context, f *facade) ([]finding, error) {
	folder := top("conformance", "sdk", "old", c.family.Program)
	name, args := "node", []string{"program.mjs", c.folder()}
	if c.family.Program == "python" {
		name, args = filepath.Join(c.folder(), "bin", "python"), []string{"-B", "program.py"}
	}
	out, err := f.program(ctx, folder, name, args...)
	if err != nil {
		return nil, err
	}
	var all []finding
	for lines := json.NewDecoder(bytes.NewReader([]byte(out))); lines.More(); {
		var one finding
		if err := lines.Decode(&one); err != nil {
			return nil, fmt.Errorf("it printed something else than findings: %w\n%s", err, out)
		}
		all = append(all, one)
	}
	return all, nil
}

// testOldClients runs every version of every client, some at once, and compares the table that comes of it with
// the one in the documentation. ISTHMUS_TEST_UPDATE=1 writes that instead.
func testOldClients(t *testing.T) {
	clients, err := oldClients()
	require.NoError(t, err)
	f := newFacade(t, settings{domain: true})
	before := f.traces()
	const atOnce = 4 // they wait for processes and timers more than they work
	found := make([][]finding, len(clients))
	started := time.Now()
	running, ctx := errgroup.WithContext(t.Context())
	running.SetLimit(atOnce)
	for i, client := range clients {
		running.Go(func() (err error) {
			found[i], err = client.run(ctx, f)
			if err != nil {
				err = fmt.Errorf("%s %s: %w", client.family.Name, client.version, err)
			}
			return err
		})
	}
	require.NoError(t, running.Wait())
	t.Logf("%d clients took %v", len(clients), time.Since(started).Round(time.Second))
	for i, client := range clients {
		t.Run(client.family.Name+" "+client.version, func(t *testing.T) { report(t, found[i]) })
	}
	compareTable(t, clientsPage(clients, found))
	f.leavesNothing(t, before)
}

// report fails for what did not pass, and lists what the version does not have.
func report(t *testing.T, found []finding) {
	t.Helper()
	assert.NotEmpty(t, found, "it said nothing")
	for _, one := range found {
		switch one.Result {
		case resultPassed:
		case resultAbsent:
			t.Logf("%s: this version does not have it", one.Area)
		default:
			t.Errorf("%s: %s", one.Area, one.Detail)
		}
	}
}

// compareTable compares the page with the committed one, or writes it.
func compareTable(t *testing.T, page string) {
	t.Helper()
	path := top("docs", "clients.md")
	if os.Getenv("ISTHMUS_TEST_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	committed, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(committed), page, "docs/clients.md is not what the clients say: run again with ISTHMUS_TEST_UPDATE=1")
}
