package filesystem_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem"
	"github.com/isthmus/isthmus/envd/daemon/filesystem/tree"
	"github.com/isthmus/isthmus/envd/daemon/identity"
	pb "github.com/isthmus/isthmus/envd/filesystem"
	"github.com/isthmus/isthmus/envd/filesystem/filesystemconnect"
)

// bench is a served service with a user whose home is a temporary folder.
type bench struct {
	client filesystemconnect.FilesystemClient
	home   string
	users  *identity.Resolver
}

const uid, gid = 12345, 23456

func start(t *testing.T) bench {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home := filepath.Join(root, "home")
	require.NoError(t, os.Mkdir(home, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	passwd := "root:x:0:0::/root:/bin/sh\nuser:x:12345:23456::" + home + ":/bin/bash\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(passwd), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/group"), []byte("user:x:23456:\n"), 0o644))
	users := identity.NewResolver(identity.NewDirectory(root), "user", "")
	service := filesystem.New(users, tree.New(users))
	t.Cleanup(service.Close)
	_, handler := filesystemconnect.NewFilesystemHandler(service)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attached, err := users.Attach(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, attached)
	}))
	t.Cleanup(server.Close)
	client := filesystemconnect.NewFilesystemClient(server.Client(), server.URL, connect.WithProtoJSON())
	return bench{client: client, home: home, users: users}
}

func (b bench) at(name string) string { return filepath.Join(b.home, name) }

func (b bench) write(t *testing.T, name string) {
	require.NoError(t, os.WriteFile(b.at(name), []byte("text"), 0o644))
}

func fails(t *testing.T, err error, code connect.Code, message string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code.String(), connect.CodeOf(err).String(), err.Error())
	require.Contains(t, err.Error(), message)
}

func TestStat(t *testing.T) {
	b := start(t)
	b.write(t, "file")
	require.NoError(t, os.Chown(b.at("file"), uid, gid))
	ctx := context.Background()
	for _, path := range []string{"file", "~/file", "./x/../file", b.at("file")} {
		res, err := b.client.Stat(ctx, connect.NewRequest(&pb.StatRequest{Path: path}))
		require.NoError(t, err)
		require.Equal(t, b.at("file"), res.Msg.Entry.Path)
		require.Equal(t, "user", res.Msg.Entry.Owner)
		require.Equal(t, "user", res.Msg.Entry.Group)
	}
	res, err := b.client.Stat(ctx, connect.NewRequest(&pb.StatRequest{}))
	require.NoError(t, err)
	require.Equal(t, b.home, res.Msg.Entry.Path, "an empty path is the home")
	b.users.SetDefaults("", b.at("work"))
	_, err = b.client.Stat(ctx, connect.NewRequest(&pb.StatRequest{}))
	fails(t, err, connect.CodeNotFound, b.at("work"))

	for path, want := range map[string]struct {
		code connect.Code
		text string
	}{
		"missing":            {connect.CodeNotFound, "file not found: lstat " + b.at("missing") + ": no such file or directory"},
		"file/below":         {connect.CodeNotFound, "file not found: lstat "},
		"~other/x":           {connect.CodeInvalidArgument, "cannot expand user-specific home dir"},
		"/proc/self/environ": {connect.CodeInvalidArgument, "refused"},
	} {
		_, err := b.client.Stat(ctx, connect.NewRequest(&pb.StatRequest{Path: path}))
		fails(t, err, want.code, want.text)
	}
}

func TestMakeDir(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	res, err := b.client.MakeDir(ctx, connect.NewRequest(&pb.MakeDirRequest{Path: "a/b"}))
	require.NoError(t, err)
	require.Equal(t, b.at("a/b"), res.Msg.Entry.Path)
	require.Equal(t, "user", res.Msg.Entry.Owner)
	require.Equal(t, "drwxr-xr-x", res.Msg.Entry.Permissions)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(b.at("a"), &st))
	require.EqualValues(t, uid, st.Uid)
	_, err = b.client.MakeDir(ctx, connect.NewRequest(&pb.MakeDirRequest{Path: "a/b"}))
	fails(t, err, connect.CodeAlreadyExists, "directory already exists: "+b.at("a/b"))
	b.write(t, "file")
	_, err = b.client.MakeDir(ctx, connect.NewRequest(&pb.MakeDirRequest{Path: "file"}))
	fails(t, err, connect.CodeInvalidArgument, "path already exists but it is not a directory: "+b.at("file"))
	_, err = b.client.MakeDir(ctx, connect.NewRequest(&pb.MakeDirRequest{Path: "file/x"}))
	fails(t, err, connect.CodeInternal, "")
}

func TestMove(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	b.write(t, "a")
	res, err := b.client.Move(ctx, connect.NewRequest(&pb.MoveRequest{Source: "a", Destination: "new/b"}))
	require.NoError(t, err)
	require.Equal(t, b.at("new/b"), res.Msg.Entry.Path)
	require.Equal(t, "root", res.Msg.Entry.Owner, "what is moved keeps its owner")
	_, err = b.client.Move(ctx, connect.NewRequest(&pb.MoveRequest{Source: "a", Destination: "made/b"}))
	fails(t, err, connect.CodeNotFound, "source file not found: rename "+b.at("a")+" "+b.at("made/b")+": no such file")
	require.DirExists(t, b.at("made"), "the destination's parents are made first")
	b.write(t, "c")
	_, err = b.client.Move(ctx, connect.NewRequest(&pb.MoveRequest{Source: "c", Destination: "made"}))
	fails(t, err, connect.CodeInternal, "error renaming: rename "+b.at("c")+" "+b.at("made")+": file exists")
}

func TestListDir(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	require.NoError(t, os.MkdirAll(b.at("d/e"), 0o755))
	b.write(t, "f")
	require.NoError(t, os.Symlink("loop", b.at("loop")))
	res, err := b.client.ListDir(ctx, connect.NewRequest(&pb.ListDirRequest{Path: "", Depth: 2}))
	require.NoError(t, err)
	var names []string
	for _, entry := range res.Msg.Entries {
		names = append(names, entry.Name)
	}
	require.Equal(t, []string{"d", "e", "f", "loop"}, names)
	for path, want := range map[string]struct {
		code connect.Code
		text string
	}{
		"missing": {connect.CodeNotFound, "path not found: "},
		"f":       {connect.CodeInvalidArgument, "path is not a directory: " + b.at("f")},
		"loop":    {connect.CodeFailedPrecondition, `cyclic symlink or chain >255 links at "` + b.at("loop") + `"`},
	} {
		_, err := b.client.ListDir(ctx, connect.NewRequest(&pb.ListDirRequest{Path: path}))
		fails(t, err, want.code, want.text)
	}
}

func TestRemove(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	require.NoError(t, os.MkdirAll(b.at("d/e"), 0o755))
	for range 2 {
		_, err := b.client.Remove(ctx, connect.NewRequest(&pb.RemoveRequest{Path: "d"}))
		require.NoError(t, err)
		require.NoDirExists(t, b.at("d"))
	}
	_, err := b.client.Remove(ctx, connect.NewRequest(&pb.RemoveRequest{Path: "/"}))
	fails(t, err, connect.CodeInternal, "")
}

func TestPolling(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	created, err := b.client.CreateWatcher(ctx, connect.NewRequest(&pb.CreateWatcherRequest{
		Path: b.home, Recursive: true, IncludeEntry: true,
	}))
	require.NoError(t, err)
	id := created.Msg.WatcherId
	require.Regexp(t, regexp.MustCompile(`^w[a-z0-9]{20}$`), id)
	poll := func() []*pb.FilesystemEvent {
		res, err := b.client.GetWatcherEvents(ctx, connect.NewRequest(&pb.GetWatcherEventsRequest{WatcherId: id}))
		require.NoError(t, err)
		return res.Msg.Events
	}
	require.Empty(t, poll())
	b.write(t, "f")
	events := poll()
	require.Len(t, events, 2)
	require.Equal(t, pb.EventType_EVENT_TYPE_CREATE, events[0].Type)
	require.Equal(t, pb.EventType_EVENT_TYPE_WRITE, events[1].Type)
	require.Equal(t, b.at("f"), events[1].Entry.Path)
	require.EqualValues(t, 4, events[1].Entry.Size)
	require.NoError(t, os.Remove(b.at("f")))
	events = poll()
	require.Len(t, events, 1)
	require.Nil(t, events[0].Entry)

	_, err = b.client.RemoveWatcher(ctx, connect.NewRequest(&pb.RemoveWatcherRequest{WatcherId: id}))
	require.NoError(t, err)
	_, err = b.client.RemoveWatcher(ctx, connect.NewRequest(&pb.RemoveWatcherRequest{WatcherId: id}))
	fails(t, err, connect.CodeNotFound, "watcher with id "+id+" not found")
	_, err = b.client.GetWatcherEvents(ctx, connect.NewRequest(&pb.GetWatcherEventsRequest{WatcherId: id}))
	fails(t, err, connect.CodeNotFound, "watcher with id "+id+" not found")

	b.write(t, "file")
	for path, code := range map[string]connect.Code{
		"missing": connect.CodeNotFound, "file": connect.CodeInvalidArgument, "~x": connect.CodeInvalidArgument,
		"/proc/1": connect.CodeInvalidArgument,
	} {
		_, err := b.client.CreateWatcher(ctx, connect.NewRequest(&pb.CreateWatcherRequest{Path: path}))
		fails(t, err, code, "")
	}
}

func TestWatchDir(t *testing.T) {
	b := start(t)
	require.NoError(t, os.Mkdir(b.at("real"), 0o755))
	require.NoError(t, os.Symlink("real", b.at("link")))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req := connect.NewRequest(&pb.WatchDirRequest{Path: "link", IncludeEntry: true})
	req.Header().Set("Keepalive-Ping-Interval", "0")
	stream, err := b.client.WatchDir(ctx, req)
	require.NoError(t, err)
	defer stream.Close()
	require.True(t, stream.Receive(), stream.Err())
	require.NotNil(t, stream.Msg().GetStart())
	b.write(t, "real/f")
	for _, want := range []pb.EventType{pb.EventType_EVENT_TYPE_CREATE, pb.EventType_EVENT_TYPE_WRITE} {
		require.True(t, stream.Receive(), stream.Err())
		event := stream.Msg().GetFilesystem()
		require.Equal(t, "f", event.GetName())
		require.Equal(t, want, event.GetType())
		require.Equal(t, b.at("link/f"), event.GetEntry().GetPath())
	}
	require.True(t, stream.Receive(), stream.Err())
	require.NotNil(t, stream.Msg().GetKeepalive(), "an interval of 0 means 1 s")
	for stream.Receive() {
	}
	fails(t, stream.Err(), connect.CodeDeadlineExceeded, "")

	stream, err = b.client.WatchDir(context.Background(), connect.NewRequest(&pb.WatchDirRequest{Path: "missing"}))
	require.NoError(t, err)
	defer stream.Close()
	require.False(t, stream.Receive())
	fails(t, stream.Err(), connect.CodeNotFound, "path "+b.at("missing")+" not found: ")
}

// Clients newer than upstream's 0.6.13 read a flag of its own, because the type stays that of the target.
func TestStatTellsLinks(t *testing.T) {
	b := start(t)
	b.write(t, "file")
	require.NoError(t, os.Symlink("file", b.at("link")))
	require.NoError(t, os.Symlink("nowhere", b.at("broken")))
	for path, want := range map[string]struct {
		link bool
		kind pb.FileType
	}{
		"file":   {false, pb.FileType_FILE_TYPE_FILE},
		"link":   {true, pb.FileType_FILE_TYPE_FILE},
		"broken": {true, pb.FileType_FILE_TYPE_UNSPECIFIED},
	} {
		answer, err := b.client.Stat(context.Background(), connect.NewRequest(&pb.StatRequest{Path: path}))
		require.NoError(t, err)
		require.Equal(t, want.link, answer.Msg.GetEntry().GetIsSymlink(), path)
		require.Equal(t, want.kind, answer.Msg.GetEntry().GetType(), path)
	}
}

// A name that is not UTF-8 is shown with replacement characters; its folder stays readable and watchable.
func TestNamesThatAreNotText(t *testing.T) {
	b := start(t)
	ctx := context.Background()
	made, err := b.client.CreateWatcher(ctx, connect.NewRequest(&pb.CreateWatcherRequest{Path: b.at("")}))
	require.NoError(t, err)
	b.write(t, "a\xff\xfeb")
	require.NoError(t, os.Symlink("a\xff\xfeb", b.at("link")))

	list, err := b.client.ListDir(ctx, connect.NewRequest(&pb.ListDirRequest{Path: b.at("")}))
	require.NoError(t, err)
	require.Len(t, list.Msg.GetEntries(), 2)
	require.Equal(t, "a\uFFFDb", list.Msg.GetEntries()[0].GetName())
	require.Equal(t, b.at("a\uFFFDb"), list.Msg.GetEntries()[1].GetSymlinkTarget())

	events, err := b.client.GetWatcherEvents(ctx, connect.NewRequest(&pb.GetWatcherEventsRequest{WatcherId: made.Msg.GetWatcherId()}))
	require.NoError(t, err)
	require.Equal(t, "a\uFFFDb", events.Msg.GetEvents()[0].GetName())
}
