package wire

import (
	"net/http"
	"strings"
)

func watchCases() []Case {
	return []Case{
		{"watch/polling right after an upload", watchPolling},
		{"watch/stream", watchStream},
		{"watch/entries", watchEntries},
		{"watch/recursive", watchRecursive},
		{"watch/refusal in the stream", watchRefused},
		{"watch/deadline", watchDeadline},
	}
}

// change is a filesystem event.
type change struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Entry *entry `json:"entry"`
}

// short is the change in one word or two.
func (c change) short() string {
	return strings.TrimPrefix(c.Type, "EVENT_TYPE_") + " " + c.Name
}

// upload writes a small file by one request.
func (s *Suite) upload(t T, path, content string) {
	t.Helper()
	c := s.envd("POST", "/files?path="+path, content)
	c.header.Set("Content-Type", "application/octet-stream")
	s.expect(t, 200, c)
}

// poll reads what a watcher has collected.
func (s *Suite) poll(t T, id string) []change {
	t.Helper()
	got := s.expect(t, 200, s.rpc("filesystem.Filesystem/GetWatcherEvents", encode(map[string]string{"watcherId": id})))
	return decode[struct{ Events []change }](t, got.body).Events
}

// words is the changes in short.
func words(changes []change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.short())
	}
	return strings.Join(all, ", ")
}

func watchPolling(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	got := s.expect(t, 200, s.rpc("filesystem.Filesystem/CreateWatcher", encode(map[string]any{"path": path})))
	id := decode[struct{ WatcherID string }](t, got.body).WatcherID
	for range 20 {
		s.upload(t, path+"/f", "content")
		equal(t, "CREATE f, CHMOD f, WRITE f", words(s.poll(t, id)), "events right after an upload")
		equal(t, "", words(s.poll(t, id)), "events are told once")
		s.expect(t, 200, s.rpc("filesystem.Filesystem/Remove", encode(map[string]string{"path": path + "/f"})))
		equal(t, "REMOVE f", words(s.poll(t, id)), "events right after a removal")
	}
	s.expect(t, 200, s.rpc("filesystem.Filesystem/RemoveWatcher", encode(map[string]string{"watcherId": id})))
	s.expect(t, 404, s.rpc("filesystem.Filesystem/GetWatcherEvents", encode(map[string]string{"watcherId": id})))
}

// watch opens a watch and reads its start.
func (s *Suite) watch(t T, fields map[string]any, header http.Header) *stream {
	t.Helper()
	opened, err := s.open(t.Context(), "filesystem.Filesystem/WatchDir", encode(fields), header)
	must(t, err, "watching")
	first := map[string]any{}
	must(t, opened.next(&first), "reading the start of a watch")
	equal(t, `{"start":{}}`, encode(first), "first message of a watch")
	return opened
}

// changes reads so many events of a watch.
func changes(t T, from *stream, count int) []change {
	t.Helper()
	var all []change
	for len(all) < count {
		var message struct{ Filesystem *change }
		must(t, from.next(&message), "reading a watch")
		if message.Filesystem != nil {
			all = append(all, *message.Filesystem)
		}
	}
	return all
}

func watchStream(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	watched := s.watch(t, map[string]any{"path": path}, nil)
	defer watched.close()
	s.upload(t, path+"/f", "content")
	equal(t, "CREATE f, CHMOD f, WRITE f", words(changes(t, watched, 3)), "a new upload")
	s.run(t, shell("cd "+path+" && echo more >> f && chmod 600 f && mv f g && rm g"))
	equal(t, "WRITE f, CHMOD f, RENAME f, CREATE g, REMOVE g", words(changes(t, watched, 5)), "changes by a shell")
}

func watchEntries(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	watched := s.watch(t, map[string]any{"path": path, "includeEntry": true}, nil)
	defer watched.close()
	s.upload(t, path+"/f", "four")
	for _, c := range changes(t, watched, 3) {
		that(t, c.Entry != nil && c.Entry.Path == path+"/f" && c.Entry.Type == "FILE_TYPE_FILE", "entry of %s: %+v", c.short(), c.Entry)
	}
	s.expect(t, 200, s.rpc("filesystem.Filesystem/Remove", encode(map[string]string{"path": path + "/f"})))
	that(t, changes(t, watched, 1)[0].Entry == nil, "a removal has no entry")
}

func watchRecursive(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.run(t, shell("mkdir "+path+"/a"))
	watched := s.watch(t, map[string]any{"path": path, "recursive": true}, nil)
	defer watched.close()
	s.run(t, shell("echo x > "+path+"/a/f"))
	equal(t, "CREATE a/f, WRITE a/f", words(changes(t, watched, 2)), "below a folder that was there")
	s.run(t, shell("mkdir "+path+"/new"))
	equal(t, "CREATE new", words(changes(t, watched, 1)), "a new folder")
	s.run(t, shell("echo x > "+path+"/new/f"))
	equal(t, "CREATE new/f, WRITE new/f", words(changes(t, watched, 2)), "below a new folder")
}

func watchRefused(t T, s *Suite) {
	for path, code := range map[string]string{"/no/such/folder": "not_found", "/etc/passwd": "invalid_argument"} {
		opened, err := s.open(t.Context(), "filesystem.Filesystem/WatchDir", encode(map[string]any{"path": path}), nil)
		must(t, err, "watching "+path)
		err = opened.next(&struct{}{})
		opened.close()
		equal(t, code, codeOf(err), "code of a watch of "+path)
	}
}

func watchDeadline(t T, s *Suite) {
	watched := s.watch(t, map[string]any{"path": "/tmp"}, http.Header{"Connect-Timeout-Ms": {"300"}})
	defer watched.close()
	var err error
	for err == nil {
		err = watched.next(&map[string]any{})
	}
	equal(t, "deadline_exceeded", codeOf(err), "code of the end frame")
}
