package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv"
	"github.com/isthmus/isthmus/store/kv/badger"
)

func open(t *testing.T, dir string) (*store.Store, kv.Engine) {
	t.Helper()
	engine, err := badger.Open(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s, err := store.Open(t.Context(), engine)
	require.NoError(t, err)
	return s, engine
}

func opened(t *testing.T) *store.Store {
	t.Helper()
	s, engine := open(t, t.TempDir())
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return s
}

func add(t *testing.T, s *store.Store, sb store.Sandbox) store.Sandbox {
	t.Helper()
	if sb.TeamID == "" {
		sb.TeamID = "team"
	}
	if sb.State == "" {
		sb.State = store.StateRunning
	}
	earlier, err := s.Sandboxes.Begin(t.Context(), store.Intent{Sandbox: sb})
	require.NoError(t, err)
	require.Nil(t, earlier)
	return sb
}

func at(seconds int) time.Time { return time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC) }

func TestIndexesFollowTheRecord(t *testing.T) {
	s, ctx := opened(t), t.Context()
	add(t, s, store.Sandbox{ID: "a", Pool: "p", BoxID: "box", EndAt: at(10)})
	add(t, s, store.Sandbox{ID: "b", State: store.StateCreating, EndAt: at(1)})

	due, next, err := s.Sandboxes.Due(ctx, at(9), 10)
	require.NoError(t, err)
	require.Empty(t, due)
	require.Equal(t, at(10), next)
	due, next, _ = s.Sandboxes.Due(ctx, at(10), 10)
	require.Equal(t, []string{"a"}, due)
	require.Zero(t, next)

	_, err = s.Sandboxes.Change(ctx, "a", func(sb *store.Sandbox) error { sb.EndAt, sb.BoxID = at(20), "other"; return nil })
	require.NoError(t, err)
	due, next, _ = s.Sandboxes.Due(ctx, at(15), 10)
	require.Empty(t, due)
	require.Equal(t, at(20), next)
	_, err = s.Sandboxes.ByBox(ctx, "p", "box")
	require.ErrorIs(t, err, store.ErrNotFound)
	found, err := s.Sandboxes.ByBox(ctx, "p", "other")
	require.NoError(t, err)
	require.Equal(t, "a", found.ID)

	refusal := errors.New("no")
	_, err = s.Sandboxes.Change(ctx, "a", func(sb *store.Sandbox) error { sb.EndAt = at(0); return refusal })
	require.ErrorIs(t, err, refusal)
	require.NoError(t, s.Sandboxes.Delete(ctx, "a"))
	require.NoError(t, s.Sandboxes.Delete(ctx, "a"))
	due, next, _ = s.Sandboxes.Due(ctx, at(100), 10)
	require.Empty(t, due)
	require.Zero(t, next)
	_, err = s.Sandboxes.Change(ctx, "a", func(*store.Sandbox) error { return nil })
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestListPages(t *testing.T) {
	s := opened(t)
	for i := range 25 {
		// Three at each second, so that pages break among equal times.
		add(t, s, store.Sandbox{ID: fmt.Sprintf("i%02d", i), StartedAt: at(i / 3), Metadata: map[string]string{"odd": fmt.Sprint(i%2 == 1)}})
	}
	add(t, s, store.Sandbox{ID: "making", State: store.StateCreating})
	add(t, s, store.Sandbox{ID: "dying", State: store.StateKilling, StartedAt: at(3)})
	add(t, s, store.Sandbox{ID: "theirs", TeamID: "other", StartedAt: at(3)})
	for _, ascending := range []bool{false, true} {
		for _, limit := range []int{1, 2, 7, 25, 100} {
			q := store.SandboxQuery{TeamID: "team", Limit: limit, Ascending: ascending}
			var ids []string
			for {
				page, err := s.Sandboxes.List(t.Context(), q)
				require.NoError(t, err)
				require.Equal(t, 25, page.Running)
				for _, sb := range page.Sandboxes {
					ids = append(ids, sb.ID)
				}
				if q.After = page.Next; q.After == nil {
					break
				}
			}
			require.Len(t, ids, 25)
			for i, id := range ids {
				want := i
				if !ascending {
					want = 24 - i
				}
				require.Equal(t, fmt.Sprintf("i%02d", want), id)
			}
		}
	}
}

// A list follows the state of a sandbox, also of one that was written before the index said it.
func TestListFollowsTheState(t *testing.T) {
	s, ctx := opened(t), t.Context()
	add(t, s, store.Sandbox{ID: "a", StartedAt: at(1)})
	listed := func(state store.State) (found []string, running int) {
		page, err := s.Sandboxes.List(ctx, store.SandboxQuery{TeamID: "team", States: []store.State{state}})
		require.NoError(t, err)
		for _, sb := range page.Sandboxes {
			found = append(found, sb.ID)
		}
		return found, page.Running
	}
	become := func(state store.State) {
		_, err := s.Sandboxes.Change(ctx, "a", func(sb *store.Sandbox) error { sb.State = state; return nil })
		require.NoError(t, err)
	}
	for state, shown := range map[store.State]store.State{
		store.StateRunning: store.StateRunning, store.StateSnapshotting: store.StateRunning,
		store.StatePausing: store.StatePaused, store.StatePaused: store.StatePaused, store.StateKilling: "",
	} {
		for _, old := range []bool{false, true} {
			become(state)
			if old {
				require.NoError(t, s.Engine().Update(ctx, func(tx kv.Tx) error {
					return tx.Set(fmt.Sprintf("sandbox.team/team/%020d/a", at(1).UnixNano()), []byte(`"a"`), 0)
				}))
			}
			for _, asked := range []store.State{store.StateRunning, store.StatePaused} {
				found, running := listed(asked)
				require.Equal(t, asked == shown, len(found) == 1, "%s, asked for %s, old: %v", state, asked, old)
				require.Equal(t, asked == shown && asked == store.StateRunning, running == 1, "%s, asked for %s, old: %v", state, asked, old)
			}
		}
	}
}

func TestListSelects(t *testing.T) {
	s := opened(t)
	add(t, s, store.Sandbox{ID: "a", StartedAt: at(1), Template: "x", Metadata: map[string]string{"k": "v", "e": ""}})
	add(t, s, store.Sandbox{ID: "b", StartedAt: at(2), Template: "y", State: store.StatePaused, Metadata: map[string]string{"<k> \"&é\u2028": "\\\n\x01"}})
	cases := []struct {
		name string
		q    store.SandboxQuery
		want []string
	}{
		{"all", store.SandboxQuery{}, []string{"b", "a"}},
		{"state", store.SandboxQuery{States: []store.State{store.StatePaused}}, []string{"b"}},
		{"template", store.SandboxQuery{Template: "x"}, []string{"a"}},
		{"started, inclusive", store.SandboxQuery{StartedAfter: at(2)}, []string{"b"}},
		{"metadata", store.SandboxQuery{Metadata: map[string]string{"k": "v"}}, []string{"a"}},
		{"metadata that is written in another way", store.SandboxQuery{Metadata: map[string]string{"<k> \"&é\u2028": "\\\n\x01"}}, []string{"b"}},
		{"what looks like metadata", store.SandboxQuery{Metadata: map[string]string{"templateID": "x"}}, nil},
		{"all pairs", store.SandboxQuery{Metadata: map[string]string{"k": "v", "x": "y"}}, nil},
		{"empty value is not absence", store.SandboxQuery{Metadata: map[string]string{"missing": ""}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.q.TeamID = "team"
			page, err := s.Sandboxes.List(t.Context(), c.q)
			require.NoError(t, err)
			var ids []string
			for _, sb := range page.Sandboxes {
				ids = append(ids, sb.ID)
			}
			require.Equal(t, c.want, ids)
		})
	}
}

func TestTeamsAndKeys(t *testing.T) {
	s, ctx := opened(t), t.Context()
	require.NoError(t, s.Teams.Add(ctx, store.Team{ID: "1", Name: "one"}))
	require.ErrorIs(t, s.Teams.Add(ctx, store.Team{ID: "2", Name: "one"}), store.ErrExists)
	require.NoError(t, s.Keys.Add(ctx, store.Key{ID: "k", TeamID: "1", Hash: "h"}))
	require.ErrorIs(t, s.Keys.Add(ctx, store.Key{ID: "l", TeamID: "1", Hash: "h"}), store.ErrExists)
	team, key, found, err := s.Keys.TeamByKeyHash(ctx, "h")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "one", team.Name)
	require.Equal(t, "k", key.ID)
	require.NoError(t, s.Keys.Revoke(ctx, "k"))
	require.ErrorIs(t, s.Keys.Revoke(ctx, "k"), store.ErrNotFound)
	_, _, found, err = s.Keys.TeamByKeyHash(ctx, "h")
	require.NoError(t, err)
	require.False(t, found)
}

func TestLogsAreBounded(t *testing.T) {
	s, ctx := opened(t), t.Context()
	const n = store.LogsMax + 1500
	for i := 0; i < n; i += 500 {
		entries := make([]store.LogEntry, 500)
		for j := range entries {
			entries[j] = store.LogEntry{At: at(i + j), Level: store.LevelInfo, Message: fmt.Sprint(i + j)}
		}
		require.NoError(t, s.Logs.Append(ctx, "team", "a", entries...))
	}
	newest, err := s.Logs.Read(ctx, "a", store.LogQuery{Backward: true, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(n-1), newest[0].Message)
	count, from := 0, time.Time{}
	for {
		page, err := s.Logs.Read(ctx, "a", store.LogQuery{From: from})
		require.NoError(t, err)
		count += len(page)
		if len(page) < 1000 {
			break
		}
		from = page[len(page)-1].At.Add(1)
	}
	require.LessOrEqual(t, count, store.LogsMax)
	require.Greater(t, count, store.LogsMax-1000)
}

func TestLogEntriesAreBounded(t *testing.T) {
	s, ctx := opened(t), t.Context()
	fields := map[string]string{}
	for i := range 1000 {
		fields[fmt.Sprint(i)] = strings.Repeat("v", 10<<10)
	}
	long := store.LogEntry{At: at(0), Level: strings.Repeat("l", 1<<20), Message: strings.Repeat("\u00e9", 2<<20), Fields: fields}
	require.NoError(t, s.Logs.Append(ctx, "team", "a", long))
	read, err := s.Logs.Read(ctx, "a", store.LogQuery{})
	require.NoError(t, err)
	require.Len(t, read, 1)
	require.Less(t, read[0].Size(), 32<<10)
	require.Equal(t, strings.Repeat("\u00e9", 2<<10), read[0].Message)
}

func TestJournalThatWasReadFurtherIsNotAdded(t *testing.T) {
	s, ctx := opened(t), t.Context()
	for _, want := range []bool{true, false} {
		added, err := s.Logs.AppendJournal(ctx, "team", "a", 0, 3, []store.LogEntry{{At: at(0), Message: "one"}})
		require.NoError(t, err)
		require.Equal(t, want, added)
	}
}

func TestLogQueries(t *testing.T) {
	s, ctx := opened(t), t.Context()
	for i, level := range []string{"debug", "info", "warn", "error"} {
		require.NoError(t, s.Logs.Append(ctx, "team", "a", store.LogEntry{At: at(i), Level: level, Message: "text " + level}))
	}
	require.NoError(t, s.Logs.Append(ctx, "team", "ab", store.LogEntry{At: at(0), Message: "another sandbox's"}))
	cases := []struct {
		name string
		q    store.LogQuery
		want []string
	}{
		{"all", store.LogQuery{}, []string{"debug", "info", "warn", "error"}},
		{"backward", store.LogQuery{Backward: true, Limit: 2}, []string{"error", "warn"}},
		{"from, inclusive", store.LogQuery{From: at(2)}, []string{"warn", "error"}},
		{"to, inclusive", store.LogQuery{To: at(1)}, []string{"debug", "info"}},
		{"backward between", store.LogQuery{From: at(1), To: at(2), Backward: true}, []string{"warn", "info"}},
		{"level", store.LogQuery{MinLevel: "warn"}, []string{"warn", "error"}},
		{"search", store.LogQuery{Search: "t info"}, []string{"info"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			entries, err := s.Logs.Read(ctx, "a", c.q)
			require.NoError(t, err)
			var levels []string
			for _, e := range entries {
				levels = append(levels, e.Level)
			}
			require.Equal(t, c.want, levels)
		})
	}
}

func TestJournalIsAddedOnce(t *testing.T) {
	s, ctx := opened(t), t.Context()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			entry := store.LogEntry{At: at(0), Message: "one"}
			if _, err := s.Logs.AppendJournal(ctx, "team", "a", 0, 7, []store.LogEntry{entry}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := s.Logs.Read(ctx, "a", store.LogQuery{})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	read, err := s.Logs.JournalRead(ctx, "a")
	require.NoError(t, err)
	require.EqualValues(t, 7, read)
}

func TestMetrics(t *testing.T) {
	s, ctx := opened(t), t.Context()
	_, err := s.Metrics.Latest(ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	for i := range 5 {
		require.NoError(t, s.Metrics.Add(ctx, "a", store.Metric{At: at(i), MemUsed: int64(i)}))
	}
	latest, err := s.Metrics.Latest(ctx, "a")
	require.NoError(t, err)
	require.EqualValues(t, 4, latest.MemUsed)
	some, err := s.Metrics.Between(ctx, "a", at(1), at(3))
	require.NoError(t, err)
	require.Len(t, some, 3)
}

func TestBackupAndLoad(t *testing.T) {
	from := opened(t)
	require.NoError(t, from.Teams.Add(t.Context(), store.Team{ID: "1", Name: "one"}))
	var file bytes.Buffer
	require.NoError(t, from.Engine().Backup(t.Context(), &file))
	to := opened(t)
	require.NoError(t, to.Engine().Load(t.Context(), &file))
	team, err := to.Teams.ByName(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "1", team.ID)
}

func TestOneOpener(t *testing.T) {
	dir := t.TempDir()
	_, engine := open(t, dir)
	_, err := badger.Open(dir, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, badger.ErrLocked)
	require.NoError(t, engine.Close())
}

func TestDamagedStoreIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	_, engine := open(t, dir)
	require.NoError(t, engine.Close())
	require.NoError(t, os.WriteFile(dir+"/MANIFEST", []byte("not a manifest"), 0o600))
	_, err := badger.Open(dir, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "left as it is")
	left, err := os.ReadFile(dir + "/MANIFEST")
	require.NoError(t, err)
	require.Equal(t, "not a manifest", string(left))
}

func TestNewerLayoutIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, engine := open(t, dir)
	require.NoError(t, engine.Update(t.Context(), func(tx kv.Tx) error { return tx.Set("format", []byte("99"), 0) }))
	_, err := store.Open(t.Context(), engine)
	require.ErrorContains(t, err, "release")
	require.NoError(t, engine.Close())
}

func TestUpdateEndsWithItsContext(t *testing.T) {
	_, engine := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, engine.Update(ctx, func(kv.Tx) error { return nil }), context.Canceled)
	require.NoError(t, engine.Close())
}
