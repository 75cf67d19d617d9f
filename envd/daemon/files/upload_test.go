package files

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon/filesystem/watch"
)

func (b *bench) stat(name string) unix.Stat_t {
	var st unix.Stat_t
	require.NoError(b, unix.Stat(b.at(name), &st))
	return st
}

func (b *bench) attributes(name string) map[string]string {
	list := make([]byte, 4096)
	n, err := unix.Listxattr(b.at(name), list)
	require.NoError(b, err)
	found := map[string]string{}
	for attribute := range strings.SplitSeq(strings.TrimRight(string(list[:n]), "\x00"), "\x00") {
		if attribute == "" {
			continue
		}
		value := make([]byte, 4096)
		n, err := unix.Getxattr(b.at(name), attribute, value)
		require.NoError(b, err)
		found[attribute] = string(value[:n])
	}
	return found
}

func TestUploadRaw(t *testing.T) {
	b := start(t)
	res := b.put("new/dir/f.txt", "hello")
	require.Equal(t, 200, res.StatusCode, res.body)
	require.Equal(t, "application/json; charset=utf-8", res.Header.Get("Content-Type"))
	require.JSONEq(t, `[{"name":"f.txt","path":"`+b.at("new/dir/f.txt")+`","type":"file"}]`, res.body)
	require.Equal(t, "hello", b.read("new/dir/f.txt"))
	for name, mode := range map[string]uint32{"new": unix.S_IFDIR | 0o755, "new/dir": unix.S_IFDIR | 0o755,
		"new/dir/f.txt": unix.S_IFREG | 0o644} {
		st := b.stat(name)
		require.Equal(t, [3]uint32{uid, gid, mode}, [3]uint32{st.Uid, st.Gid, st.Mode}, name)
	}

	b.write("old", "a longer text")
	require.NoError(t, os.Chmod(b.at("old"), 0o755))
	require.Equal(t, 200, b.put("old", "short").StatusCode)
	require.Equal(t, "short", b.read("old"))
	st := b.stat("old")
	require.Equal(t, [2]uint32{uid, unix.S_IFREG | 0o755}, [2]uint32{st.Uid, st.Mode}, "the mode is kept, the owner is not")

	require.NoError(t, os.Symlink("target", b.at("link")))
	require.Equal(t, 200, b.put("link", "through").StatusCode)
	require.Equal(t, "through", b.read("target"))

	query := url.Values{"path": {"mine"}, "username": {"root"}}
	res = b.do(http.MethodPost, RouteFiles, query, strings.NewReader(""), "Content-Type", "application/octet-stream")
	require.Equal(t, 200, res.StatusCode)
	require.Zero(t, b.stat("root/mine").Uid)

	large := strings.Repeat("0123456789abcdef", 1<<15) + "end"
	require.Equal(t, 200, b.put("large", large).StatusCode)
	require.Equal(t, large, b.read("large"))
	require.Equal(t, 200, b.put("large", zip(t, large), "Content-Encoding", "gzip").StatusCode)
	require.Equal(t, large, b.read("large"))
}

func TestUploadForm(t *testing.T) {
	b := start(t)
	res := b.post(nil, part{"file", "a/b/c.txt", "1"}, part{"other", "x", "no"}, part{"file", "d.txt", "2"})
	require.Equal(t, 200, res.StatusCode, res.body)
	require.JSONEq(t, `[{"name":"c.txt","path":"`+b.at("a/b/c.txt")+`","type":"file"},
		{"name":"d.txt","path":"`+b.at("d.txt")+`","type":"file"}]`, res.body)
	require.Equal(t, "1", b.read("a/b/c.txt"))
	require.NoFileExists(t, b.at("x"))

	res = b.post(url.Values{"path": {"here"}}, part{"file", "there", "3"})
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "3", b.read("here"))
	require.NoFileExists(t, b.at("there"))
	res = b.post(url.Values{"path": {"here"}}, part{"file", "", "4"})
	require.Equal(t, 200, res.StatusCode, "a signed form has no file name")
	require.Equal(t, "4", b.read("here"))
	res = b.post(nil, part{"other", "x", "no"})
	require.Equal(t, 200, res.StatusCode)
	require.JSONEq(t, "[]", res.body)

	contentType, body := form(t, part{"file", "zipped", "5"})
	res = b.do(http.MethodPost, RouteFiles, nil, strings.NewReader(zip(t, body.String())),
		"Content-Type", contentType, "Content-Encoding", "gzip")
	require.Equal(t, 200, res.StatusCode, res.body)
	require.Equal(t, "5", b.read("zipped"))
}

func TestUploadRefuses(t *testing.T) {
	b := start(t)
	b.write("file", "kept")
	require.NoError(t, os.Mkdir(b.at("folder"), 0o755))
	require.NoError(t, unix.Mkfifo(b.at("fifo"), 0o644))
	raw := "application/octet-stream"
	broken := zip(t, "some text")
	broken = broken[:len(broken)-6] + "xxxxxx"
	tests := []struct {
		name    string
		query   string
		kind    string
		coding  string
		body    string
		status  int
		message string
	}{
		{"no path", "", raw, "", "x", 400, "path query parameter is required for raw body upload"},
		{"other type", "path=f", "text/plain", "", "x", 400,
			"unsupported content type: text/plain, expected multipart/form-data or application/octet-stream"},
		{"no type", "path=f", "", "", "x", 400, "unsupported content type: , expected multipart"},
		{"folder", "path=folder", raw, "", "x", 400, "path is a directory: " + b.at("folder")},
		{"new folder", "path=" + b.home + "/new/", raw, "", "x", 400, "path is a directory: "},
		{"below a file", "path=file/x/y", raw, "", "x", 500, "error ensuring directories: path is a file: " + b.at("file")},
		{"FIFO", "path=fifo", raw, "", "x", 400, "path is not a regular file: " + b.at("fifo")},
		{"device", "path=/dev/null", raw, "", "x", 400, "path is not a regular file: /dev/null"},
		{"the daemon", "path=/proc/self/comm", raw, "", "x", 400, "refused"},
		{"unknown user", "path=f&username=nobody", raw, "", "x", 401, "error looking up user 'nobody'"},
		{"other coding", "path=f", raw, "br", "x", 400,
			"error decompressing request body: unsupported Content-Encoding: br, supported: [gzip]"},
		{"not gzip", "path=f", raw, "gzip", "no gzip here", 400, "error decompressing request body: "},
		{"broken gzip", "path=f", raw, "gzip", broken, 400, "error reading request body: gzip: invalid checksum"},
		{"no boundary", "", "multipart/form-data", "", "x", 500, "error parsing multipart form: "},
		{"no form", "", "multipart/form-data; boundary=b", "", "x", 500, "error reading form: "},
		{"form breaks off", "path=g", "multipart/form-data; boundary=b", "",
			"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nsome", 500, "error reading form: "},
		{"no name", "", "multipart/form-data; boundary=b", "",
			"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--b--\r\n", 400,
			"error getting multipart custom part file name: filename not found in Content-Disposition header"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			require.NoError(t, err)
			headers := []string{}
			if test.kind != "" {
				headers = append(headers, "Content-Type", test.kind)
			}
			if test.coding != "" {
				headers = append(headers, "Content-Encoding", test.coding)
			}
			res := b.do(http.MethodPost, RouteFiles, query, strings.NewReader(test.body), headers...)
			require.Equal(t, test.status, res.StatusCode, res.body)
			require.Contains(t, res.message(t), test.message)
		})
	}
	require.Equal(t, "kept", b.read("file"))

	res := b.post(nil, part{"file", "twice", "first"}, part{"file", "twice", "second"})
	require.Equal(t, 400, res.StatusCode)
	require.Equal(t, "you cannot upload multiple files to the same path '"+b.at("twice")+
		"' in one upload request, only the first specified file was uploaded", res.message(t))
	require.Equal(t, "first", b.read("twice"))
}

// A body that breaks off must not pass for a short one.
func TestUploadBreaksOff(t *testing.T) {
	b := start(t)
	h := New(b.users, nil, func() string { return "" })
	fd, err := unix.Open(b.at("f"), unix.O_CREAT|unix.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer unix.Close(fd)
	body := io.MultiReader(strings.NewReader("some"), failing{io.ErrUnexpectedEOF})
	var broken *bodyError
	require.ErrorAs(t, h.write(fd, body), &broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestMetadata(t *testing.T) {
	b := start(t)
	res := b.put("f", "x", "X-Metadata-Color", "red", "x-metadata-size", "10 cm", "X-Metadata-Color", "blue")
	require.Equal(t, 200, res.StatusCode, res.body)
	require.JSONEq(t, `[{"name":"f","path":"`+b.at("f")+`","type":"file","metadata":{"color":"red","size":"10 cm"}}]`, res.body)
	require.Equal(t, map[string]string{"user.e2b.color": "red", "user.e2b.size": "10 cm"}, b.attributes("f"))
	require.NoError(t, unix.Setxattr(b.at("f"), "user.mine", []byte("kept"), 0))
	require.Equal(t, 200, b.put("f", "x", "X-Metadata-Size", "11").StatusCode)
	require.Equal(t, map[string]string{"user.e2b.size": "11", "user.mine": "kept"}, b.attributes("f"))
	require.Equal(t, 200, b.put("f", "x").StatusCode)
	require.Equal(t, map[string]string{"user.mine": "kept"}, b.attributes("f"))

	for name, header := range map[string][2]string{
		"value not ASCII": {"X-Metadata-K", "grün"},
		"tab":             {"X-Metadata-K", "a\tb"},
		"empty key":       {"X-Metadata-", "v"},
		"long key":        {"X-Metadata-" + strings.Repeat("k", 247), "v"},
		"too much":        {"X-Metadata-K", strings.Repeat("v", 4096-9)},
	} {
		res := b.put("g", "x", header[0], header[1])
		require.Equal(t, 400, res.StatusCode, name)
		require.Contains(t, res.message(t), "invalid metadata: ")
	}
	require.NoFileExists(t, b.at("g"))
	longest := "X-Metadata-" + strings.Repeat("k", 246)
	require.Equal(t, 200, b.put("g", "x", longest, "v").StatusCode)
}

// What those who watch a folder see of uploads into it; polling clients count on it.
func TestUploadEvents(t *testing.T) {
	tests := []struct {
		name   string
		upload func(b *bench) result
		want   string
	}{
		{"new", func(b *bench) result { return b.put("f", "x") }, "CREATE CHMOD WRITE"},
		{"new by form", func(b *bench) result { return b.post(nil, part{"file", "f", "x"}) }, "CREATE CHMOD WRITE"},
		{"new of 100 KB by form", func(b *bench) result {
			return b.post(nil, part{"file", "f", strings.Repeat("x", 100_000)})
		}, "CREATE CHMOD WRITE"},
		{"new and empty", func(b *bench) result { return b.put("f", "") }, "CREATE CHMOD"},
		{"new with metadata", func(b *bench) result { return b.put("f", "x", "X-Metadata-K", "v") },
			"CREATE CHMOD WRITE CHMOD"},
		{"over another", func(b *bench) result { return b.put("old", "x") }, "CHMOD WRITE WRITE"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := start(t)
			b.write("old", "some")
			engine := watch.New()
			defer engine.Close()
			w, err := engine.Watch(context.Background(), b.home, true)
			require.NoError(t, err)
			res := test.upload(b)
			require.Equal(t, 200, res.StatusCode, res.body)
			engine.Flush()
			events, err := w.Take()
			require.NoError(t, err)
			var got []string
			for _, event := range events {
				got = append(got, strings.TrimPrefix(event.Type.String(), "EVENT_TYPE_"))
			}
			// The kernel joins like events that follow each other, if nobody has read the first yet.
			seen := strings.ReplaceAll(strings.Join(got, " "), "WRITE WRITE", "WRITE")
			require.Equal(t, strings.ReplaceAll(test.want, "WRITE WRITE", "WRITE"), seen)
		})
	}
}

func TestUploadWhenFull(t *testing.T) {
	b := start(t)
	mount := func(name, options string) {
		require.NoError(t, os.Mkdir(b.at(name), 0o755))
		require.NoError(t, unix.Mount("none", b.at(name), "tmpfs", 0, options), "this test needs to be root")
		t.Cleanup(func() { require.NoError(t, unix.Unmount(b.at(name), unix.MNT_DETACH)) })
	}
	mount("small", "size=64k")
	mount("few", "nr_inodes=2")
	text := strings.Repeat("x", 100_000)
	res := b.put("small/f", text)
	require.Equal(t, 507, res.StatusCode)
	require.Equal(t, "attempted to write 100000 bytes: not enough disk space available", res.message(t))
	res = b.do(http.MethodPost, RouteFiles, url.Values{"path": {"small/f"}}, onlyReader{strings.NewReader(text)},
		"Content-Type", "application/octet-stream")
	require.Equal(t, 507, res.StatusCode)
	require.Equal(t, "not enough disk space available", res.message(t))

	require.Equal(t, 200, b.put("few/a", "x").StatusCode)
	for _, path := range []string{"few/b", "few/c/d"} {
		res = b.put(path, "x")
		require.Equal(t, 507, res.StatusCode)
		require.Contains(t, res.message(t), "not enough inodes available: ")
	}
}

func TestCompose(t *testing.T) {
	b := start(t)
	compose := func(body string) result {
		return b.do(http.MethodPost, RouteCompose, nil, strings.NewReader(body), "Content-Type", "application/json")
	}
	b.write("a", "one ")
	b.write("b", "two")
	b.write("dest/out", "old")
	res := compose(`{"source_paths":["a","b","a"],"destination":"dest/out"}`)
	require.Equal(t, 200, res.StatusCode, res.body)
	require.JSONEq(t, `{"name":"out","path":"`+b.at("dest/out")+`","type":"file"}`, res.body)
	require.Equal(t, "one twoone ", b.read("dest/out"))
	require.EqualValues(t, uid, b.stat("dest/out").Uid)
	require.NoFileExists(t, b.at("a"))
	require.NoFileExists(t, b.at("b"))

	b.write("a", "x")
	require.NoError(t, os.Mkdir(b.at("folder"), 0o755))
	for body, want := range map[string]struct {
		status  int
		message string
	}{
		`{`:                                     {400, "error parsing request body: "},
		`{"source_paths":[],"destination":"d"}`: {400, "source_paths must not be empty"},
		`{"source_paths":["a"]}`:                {400, "destination is required"},
		`{"source_paths":["a"],"destination":"./a"}`:                       {400, "source path equals destination: a"},
		`{"source_paths":["folder"],"destination":"d"}`:                    {400, "is a directory"},
		`{"source_paths":["a","none"],"destination":"d"}`:                  {404, "source file not found: none"},
		`{"source_paths":["a"],"destination":"d","username":"nobody"}`:     {401, "error looking up user 'nobody'"},
		`{"source_paths":["a"],"destination":"folder"}`:                    {400, "path is a directory: "},
		`{"source_paths":["/proc/self/environ"],"destination":"d"}`:        {400, "refused"},
		`{"source_paths":["a"],"destination":"/proc/self/root/tmp/never"}`: {400, "refused"},
		`{"source_paths":["a"],"destination":"d","x":[]}`:                  {200, ""},
	} {
		res := compose(body)
		require.Equal(t, want.status, res.StatusCode, body+res.body)
		if want.message != "" {
			require.Contains(t, res.message(t), want.message)
		}
		b.write("a", "x")
	}
	left, err := filepath.Glob(b.at("*.tmp"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, 405, b.do(http.MethodGet, RouteCompose, nil, nil).StatusCode)
}
