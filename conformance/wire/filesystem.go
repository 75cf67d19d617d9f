package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

func filesystemCases() []Case {
	return []Case{
		{"filesystem/stat", stat},
		{"filesystem/stat of links", statLinks},
		{"filesystem/make, move, list and remove", makeMoveRemove},
		{"filesystem/depth and order of a list", listDepth},
		{"filesystem/codes", filesystemCodes},
		{"filesystem/names in snake case and unknown fields", lenientJSON},
	}
}

// scratch makes an empty folder for one case; the returned function removes it.
func (s *Suite) scratch(t T) (string, func()) {
	t.Helper()
	path := fmt.Sprintf("/tmp/wire-%d", time.Now().UnixNano())
	s.expect(t, 200, s.rpc("filesystem.Filesystem/MakeDir", encode(map[string]string{"path": path})))
	return path, func() {
		s.expect(t, 200, s.rpc("filesystem.Filesystem/Remove", encode(map[string]string{"path": path})))
	}
}

// stat looks at one path of the subject.
func (s *Suite) stat(t T, path string) entry {
	t.Helper()
	got := s.expect(t, 200, s.rpc("filesystem.Filesystem/Stat", encode(map[string]string{"path": path})))
	return decode[struct{ Entry entry }](t, got.body).Entry
}

func stat(t T, s *Suite) {
	got := s.stat(t, "/home/user/canary/file")
	_, err := time.Parse(time.RFC3339Nano, got.ModifiedTime)
	must(t, err, "reading the time")
	that(t, strings.HasSuffix(got.ModifiedTime, "Z"), "time %s is not UTC", got.ModifiedTime)
	got.ModifiedTime = ""
	equal(t, entry{
		Name: "file", Type: "FILE_TYPE_FILE", Path: "/home/user/canary/file", Size: "6", Mode: 0o644,
		Permissions: "-rw-r--r--", Owner: "user", Group: "user",
	}, got, "entry")
	folder := s.stat(t, "canary")
	equal(t, "FILE_TYPE_DIRECTORY /home/user/canary drwxr-xr-x", folder.Type+" "+folder.Path+" "+folder.Permissions, "a folder by a relative path")
}

func statLinks(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.run(t, shell("cd "+path+" && echo x > f && ln -s f link && ln -s nowhere broken"))
	link := s.stat(t, path+"/link")
	equal(t, "FILE_TYPE_FILE Lrwxrwxrwx", link.Type+" "+link.Permissions, "a link has the type of its target")
	that(t, link.IsSymlink && !s.stat(t, path+"/f").IsSymlink, "isSymlink, by which new clients tell links")
	that(t, link.SymlinkTarget != nil && *link.SymlinkTarget == path+"/f", "symlinkTarget: %v", link.SymlinkTarget)
	broken := s.stat(t, path+"/broken")
	equal(t, "", broken.Type, "a broken link has no type")
}

func makeMoveRemove(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	made := s.expect(t, 200, s.rpc("filesystem.Filesystem/MakeDir", encode(map[string]string{"path": path + "/a/b"})))
	equal(t, "FILE_TYPE_DIRECTORY", decode[struct{ Entry entry }](t, made.body).Entry.Type, "type of what was made")
	moved := s.expect(t, 200, s.rpc("filesystem.Filesystem/Move", encode(map[string]string{"source": path + "/a", "destination": path + "/new/c"})))
	equal(t, path+"/new/c", decode[struct{ Entry entry }](t, moved.body).Entry.Path, "path of what was moved")
	for range 2 {
		got := s.expect(t, 200, s.rpc("filesystem.Filesystem/Remove", encode(map[string]string{"path": path + "/new"})))
		equal(t, "{}", string(got.body), "answer of Remove, also when there is nothing")
	}
	equal(t, 0, len(s.list(t, path, 9)), "entries left")
}

func listDepth(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.run(t, shell("cd "+path+" && mkdir -p b/bb a && touch c .hidden b/x b/bb/y"))
	for depth, want := range map[int]string{0: ".hidden a b c", 1: ".hidden a b c", 2: ".hidden a b bb x c", 3: ".hidden a b bb y x c"} {
		var names []string
		for _, found := range s.list(t, path, depth) {
			names = append(names, found.Name)
			that(t, strings.HasPrefix(found.Path, path+"/"), "path %s", found.Path)
		}
		equal(t, want, strings.Join(names, " "), fmt.Sprintf("depth %d", depth))
	}
}

func filesystemCodes(t T, s *Suite) {
	path, remove := s.scratch(t)
	defer remove()
	s.run(t, shell("cd "+path+" && touch file && mkdir folder && ln -s loop loop"))
	for _, want := range []struct {
		method, message string
		status          int
		code            string
	}{
		{"Stat", `{"path":"` + path + `/missing"}`, 404, "not_found"},
		{"Stat", `{"path":"` + path + `/file/below"}`, 404, "not_found"},
		{"Stat", `{"path":"~nobody/x"}`, 400, "invalid_argument"},
		{"ListDir", `{"path":"` + path + `/missing"}`, 404, "not_found"},
		{"ListDir", `{"path":"` + path + `/file"}`, 400, "invalid_argument"},
		{"ListDir", `{"path":"` + path + `/loop"}`, 400, "failed_precondition"},
		{"MakeDir", `{"path":"` + path + `/folder"}`, 409, "already_exists"},
		{"MakeDir", `{"path":"` + path + `/file"}`, 400, "invalid_argument"},
		{"MakeDir", `{"path":"` + path + `/file/below"}`, 500, "internal"},
		{"Move", `{"source":"` + path + `/missing","destination":"` + path + `/x"}`, 404, "not_found"},
		{"Move", `{"source":"` + path + `/file","destination":"` + path + `/folder"}`, 500, "internal"},
		{"CreateWatcher", `{"path":"` + path + `/missing"}`, 404, "not_found"},
		{"CreateWatcher", `{"path":"` + path + `/file"}`, 400, "invalid_argument"},
		{"GetWatcherEvents", `{"watcherId":"wunknown"}`, 404, "not_found"},
		{"RemoveWatcher", `{"watcherId":"wunknown"}`, 404, "not_found"},
	} {
		got := s.do(t, s.rpc("filesystem.Filesystem/"+want.method, want.message))
		equal(t, want.status, got.status, want.method+" "+want.message)
		equal(t, want.code, decode[connectError](t, got.body).Code, want.method+" "+want.message)
	}
}

func lenientJSON(t T, s *Suite) {
	got := s.expect(t, 200, s.rpc("filesystem.Filesystem/CreateWatcher", `{"path":"/tmp","include_entry":true,"no_such_field":{"a":[1]}}`))
	id := decode[map[string]json.RawMessage](t, got.body)["watcherId"]
	that(t, len(id) == 23 && id[1] == 'w', "watcher id %s is not w and 20 characters", id)
	s.expect(t, 200, s.rpc("filesystem.Filesystem/RemoveWatcher", `{"watcher_id":`+string(id)+`}`))
}
