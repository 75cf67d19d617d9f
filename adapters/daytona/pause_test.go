package daytona

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// one is an adapter for a server with one sandbox of the id a and the name box, whose facts calls change. It returns
// the calls that were to change something.
func one(t *testing.T, facts string, calls map[string]string) (*Provider, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			seen = append(seen, r.URL.Path)
			if next, known := calls[r.URL.Path]; known {
				facts = next
			}
		}
		_, _ = fmt.Fprintf(w, `{"id":"a","labels":{"isthmus-id":"box"},"createdAt":"2026-01-02T03:04:05Z",%s}`, facts)
	}))
	t.Cleanup(server.Close)
	p, err := New(Config{APIURL: server.URL, Key: func() (string, error) { return "dtn_key", nil }, Class: ClassVM})
	require.NoError(t, err)
	return p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestNoPauseThatDeletes refuses a pause of what a stop deletes, before anything is changed.
func TestNoPauseThatDeletes(t *testing.T) {
	for _, level := range []adapters.Level{adapters.LevelFilesystem, adapters.LevelMemory} {
		for _, facts := range []string{`"state":"started"`, `"state":"error","recoverable":true`} {
			p, changes := one(t, facts+`,"autoDeleteInterval":0`, nil)
			require.Equal(t, adapters.KindUnsupported, adapters.KindOf(p.Pause(t.Context(), "box", level)))
			require.Empty(t, changes())
		}
	}
	p, changes := one(t, `"state":"started","autoDeleteInterval":-1`, map[string]string{"/sandbox/a/stop": `"state":"stopped"`})
	require.NoError(t, p.Pause(t.Context(), "box", adapters.LevelFilesystem))
	require.Equal(t, []string{"/sandbox/a/ttl/0", "/sandbox/a/stop"}, changes())
}

// TestWhatCanBeRecoveredIsPaused tells the errors that are the end of a sandbox from those that it comes back from.
func TestWhatCanBeRecoveredIsPaused(t *testing.T) {
	for facts, want := range map[string]adapters.Box{
		`"state":"error"`:                                               {},
		`"state":"error","recoverable":false`:                           {},
		`"state":"build_failed","recoverable":true`:                     {},
		`"state":"error","recoverable":true,"desiredState":"started"`:   {Alive: true, Paused: true},
		`"state":"error","recoverable":true,"desiredState":"destroyed"`: {},
		`"state":"started","recoverable":true`:                          {Alive: true},
	} {
		p, _ := one(t, facts, nil)
		box, err := p.Get(t.Context(), "box")
		if err != nil {
			require.Equal(t, adapters.KindNotFound, adapters.KindOf(err), "%v", err)
		}
		require.Equal(t, []bool{want.Alive, want.Paused}, []bool{box.Alive, box.Paused}, facts)
	}
}

// TestARecoveryMayEndStopped starts what was recovered, where the recovery does not.
func TestARecoveryMayEndStopped(t *testing.T) {
	p, changes := one(t, `"state":"error","recoverable":true,"desiredState":"started"`, map[string]string{
		"/sandbox/a/recover": `"state":"stopped","desiredState":"stopped"`, "/sandbox/a/start": `"state":"started","desiredState":"started"`,
	})
	require.Equal(t, adapters.KindPrecondition, adapters.KindOf(p.Pause(t.Context(), "box", adapters.LevelMemory)), "there is no memory")
	require.NoError(t, p.Pause(t.Context(), "box", adapters.LevelFilesystem))
	require.Equal(t, []string{"/sandbox/a/ttl/0"}, changes())
	box, err := p.Resume(t.Context(), adapters.Spec{BoxID: "box", Envd: envd.Config{Deadline: time.Now().Add(time.Hour)}})
	require.NoError(t, err)
	require.True(t, box.Alive && !box.Paused)
	require.Equal(t, []string{"/sandbox/a/recover", "/sandbox/a/start"}, changes()[1:3])
}
