package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// open gives an engine that is closed at the end of the test, and a folder.
func open(t *testing.T) (*Engine, string) {
	e := New()
	t.Cleanup(e.Close)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return e, dir
}

// taken flushes and renders what a watcher holds, for example "CREATE a".
func taken(t *testing.T, w *Watcher) []string {
	w.engine.Flush()
	events, err := w.Take()
	require.NoError(t, err)
	var found []string
	for _, event := range events {
		found = append(found, strings.TrimPrefix(event.Type.String(), "EVENT_TYPE_")+" "+event.Name)
	}
	return found
}

func TestEvents(t *testing.T) {
	type step func(t *testing.T, at func(string) string)
	must := func(f func(at func(string) string) error) step {
		return func(t *testing.T, at func(string) string) { require.NoError(t, f(at)) }
	}
	write := func(name, text string) step {
		return must(func(at func(string) string) error { return os.WriteFile(at(name), []byte(text), 0o644) })
	}
	mkdir := func(name string) step {
		return must(func(at func(string) string) error { return os.MkdirAll(at(name), 0o755) })
	}
	move := func(from, to string) step {
		return must(func(at func(string) string) error { return os.Rename(at(from), at(to)) })
	}
	remove := func(name string) step {
		return must(func(at func(string) string) error { return os.RemoveAll(at(name)) })
	}
	chown := func(name string) step {
		return must(func(at func(string) string) error { return os.Chown(at(name), 7, 8) })
	}
	// The folder is w/ and holds old, sub/ with in/ below; out/ is beside it.
	tests := []struct {
		name      string
		recursive bool
		steps     []step
		want      []string
	}{
		{"new file", false, []step{write("w/f", "x"), chown("w/f")}, []string{"CREATE f", "WRITE f", "CHMOD f"}},
		{"new empty file", false, []step{write("w/f", "")}, []string{"CREATE f"}},
		{"move inside", false, []step{move("w/old", "w/new")}, []string{"RENAME old", "CREATE new"}},
		{"move out", false, []step{move("w/old", "out/old")}, []string{"RENAME old"}},
		{"move in", false, []step{move("out/x", "w/x")}, []string{"CREATE x"}},
		{"remove", false, []step{remove("w/old")}, []string{"REMOVE old"}},
		{"below, not recursive", false, []step{write("w/sub/f", "x")}, nil},
		{"the folder itself changes", false, []step{chown("w")}, []string{"CHMOD ."}},
		{"the folder itself goes", false, []step{remove("w/old"), remove("w/sub"), remove("w")},
			[]string{"REMOVE old", "REMOVE sub", "REMOVE ."}},
		{"the folder itself is renamed", false, []step{move("w", "v"), write("v/f", "")},
			[]string{"RENAME .", "CREATE f"}},
		{"below", true, []step{write("w/sub/in/f", "x")}, []string{"CREATE sub/in/f", "WRITE sub/in/f"}},
		{"a folder below changes once", true, []step{chown("w/sub")}, []string{"CHMOD sub"}},
		{"remove a tree, leaves first", true, []step{remove("w/sub")}, []string{"REMOVE sub/in", "REMOVE sub"}},
		{"new folders at once", true, []step{mkdir("w/a/b/c")}, []string{"CREATE a", "CREATE a/b", "CREATE a/b/c"}},
		{"a renamed folder goes on", true, []step{move("w/sub", "w/other"), write("w/other/in/f", "")},
			[]string{"RENAME sub", "CREATE other", "CREATE other/in/f"}},
		{"a folder that left is forgotten", true, []step{move("w/sub", "out/sub"), write("out/sub/f", "")},
			[]string{"RENAME sub"}},
		{"a folder that came is watched", true, []step{move("out", "w/out"), remove("w/out/x")},
			[]string{"CREATE out", "REMOVE out/x"}},
		{"a folder in place of another", true, []step{remove("w/sub"), mkdir("w/sub"), write("w/sub/f", "")},
			[]string{"REMOVE sub/in", "REMOVE sub", "CREATE sub", "CREATE sub/f"}},
		{"back and forth", true, []step{move("w/sub", "w/a"), move("w/a", "w/sub"), write("w/sub/in/f", "")},
			[]string{"RENAME sub", "CREATE a", "RENAME a", "CREATE sub", "CREATE sub/in/f"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, dir := open(t)
			at := func(name string) string { return filepath.Join(dir, name) }
			mkdir("w/sub/in")(t, at)
			mkdir("out")(t, at)
			write("w/old", "")(t, at)
			write("out/x", "x")(t, at)
			w, err := e.Watch(context.Background(), at("w"), test.recursive)
			require.NoError(t, err)
			var got []string
			for _, step := range test.steps {
				step(t, at)
				got = append(got, taken(t, w)...)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// What is made faster than a new folder can be watched is told of once.
func TestFastTreesAreToldOfOnce(t *testing.T) {
	e, dir := open(t)
	w, err := e.Watch(context.Background(), dir, true)
	require.NoError(t, err)
	want := map[string]bool{}
	for i := range 50 {
		deep := fmt.Sprintf("d%d/a/b", i)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, deep), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, deep, "f"), nil, 0o644))
		for name := filepath.Join(deep, "f"); name != "."; name = filepath.Dir(name) {
			want[name] = true
		}
	}
	created := map[string]bool{}
	for _, event := range taken(t, w) {
		name, ok := strings.CutPrefix(event, "CREATE ")
		require.True(t, ok, event)
		require.False(t, created[name], "%s twice", name)
		created[name] = true
	}
	require.Equal(t, want, created)
}

func TestWatchersShareFolders(t *testing.T) {
	e, dir := open(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	all, err := e.Watch(context.Background(), dir, true)
	require.NoError(t, err)
	sub, err := e.Watch(context.Background(), filepath.Join(dir, "sub"), false)
	require.NoError(t, err)
	file := filepath.Join(dir, "sub", "f")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	require.Equal(t, []string{"CREATE sub/f"}, taken(t, all))
	require.Equal(t, []string{"CREATE f"}, taken(t, sub))
	sub.Close()
	sub.Close()
	require.NoError(t, os.Remove(file))
	require.Equal(t, []string{"REMOVE sub/f"}, taken(t, all))
	all.Close()
	require.Empty(t, e.nodes)
	require.Empty(t, e.watchers)
}

// The reader needs no Flush.
func TestEventsArriveByThemselves(t *testing.T) {
	e, dir := open(t)
	w, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
		var events []Event
		for len(events) == 0 {
			select {
			case <-w.Ready():
			case <-time.After(30 * time.Second):
				require.Fail(t, "no event")
			}
			events, err = w.Take()
			require.NoError(t, err)
		}
		require.Equal(t, fmt.Sprint(i), events[0].Name)
	}
}

func TestAFullQueueFailsItsWatcherOnly(t *testing.T) {
	e, dir := open(t)
	w, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	other, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	e.mu.Lock()
	for range maxQueued {
		e.push(w, Event{Name: "x"})
	}
	e.mu.Unlock()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	e.Flush()
	_, err = w.Take()
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, []string{"CREATE f"}, taken(t, other))
}

func TestALostEventFailsEveryWatcher(t *testing.T) {
	e, dir := open(t)
	w, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	require.NoError(t, err)
	var most int
	_, err = fmt.Sscan(string(limit), &most)
	require.NoError(t, err)
	// The reader is held up while more happens than the kernel keeps.
	e.mu.Lock()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, nil, 0o644))
	for range most/2 + 1 {
		require.NoError(t, os.Rename(a, b))
		a, b = b, a
	}
	e.mu.Unlock()
	e.Flush()
	_, err = w.Take()
	require.ErrorIs(t, err, ErrLost)

	again, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	require.NoError(t, os.Remove(a))
	require.Equal(t, []string{"REMOVE " + filepath.Base(a)}, taken(t, again))
}

func TestClose(t *testing.T) {
	e, dir := open(t)
	w, err := e.Watch(context.Background(), dir, false)
	require.NoError(t, err)
	e.Close()
	<-w.Ready()
	_, err = w.Take()
	require.ErrorIs(t, err, ErrClosed)
	_, err = e.Watch(context.Background(), dir, false)
	require.ErrorIs(t, err, ErrClosed)
	e.Flush()
	e.Close()
	New().Close()
}

func TestWatchFails(t *testing.T) {
	e, dir := open(t)
	_, err := e.Watch(context.Background(), filepath.Join(dir, "missing"), true)
	require.ErrorIs(t, err, os.ErrNotExist)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Watch(ended, dir, true)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, e.watchers)
}
