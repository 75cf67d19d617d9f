package identity

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
)

const passwd = `# a comment
root:x:0:0:root:/root:/bin/bash
broken line
user:x:1000:1000::/home/user:/bin/bash
short:x:1001:1001::
toor:x:0:0::/other:/bin/sh
huge:x:99999999999:1::/:/bin/sh
`

const group = `root:x:0:
staff:x:50:user,toor
user:x:1000:user
empty:x:
`

func directory(t *testing.T) (*Directory, string) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	write(t, root, "passwd", passwd)
	write(t, root, "group", group+"big:x:77:"+strings.Repeat("someone,", 20000)+"user\n")
	return NewDirectory(root), root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644))
}

func TestLookup(t *testing.T) {
	d, root := directory(t)
	u, err := d.Lookup("user")
	require.NoError(t, err)
	require.Equal(t, User{Name: "user", UID: 1000, GID: 1000, Groups: []uint32{1000, 50, 77}, Home: "/home/user", Shell: "/bin/bash"}, u)
	u, err = d.Lookup("short")
	require.NoError(t, err)
	require.Equal(t, "/", u.Home)
	for _, name := range []string{"nobody", "", "broken line", "huge", "#"} {
		_, err = d.Lookup(name)
		require.EqualError(t, err, "user: unknown user "+name)
	}
	require.Equal(t, "root", d.UserName(0), "the first name of an id")
	require.Equal(t, "4711", d.UserName(4711))
	require.Equal(t, "staff", d.GroupName(50))
	require.Equal(t, "4711", d.GroupName(4711))

	write(t, root, "passwd", passwd+"late:x:4711:1::/late:/bin/sh\n")
	require.Equal(t, "late", d.UserName(4711), "a changed file is read again")
	require.NoError(t, os.Remove(filepath.Join(root, "etc/passwd")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "etc/passwd"), 0o644))
	_, err = d.Lookup("user")
	require.ErrorContains(t, err, "not a regular file", "and never waited for")
}

func TestExpand(t *testing.T) {
	u := User{Name: "user", Home: "/home/user"}
	for _, c := range []struct{ path, workdir, want string }{
		{"", "", "/home/user"},
		{"", "/work", "/work"},
		{"", "sub", "/home/user/sub"},
		{"~", "/work", "/home/user"},
		{"~/a/../b", "", "/home/user/b"},
		{"a/./b", "/work", "/home/user/a/b"},
		{"../x", "", "/home/x"},
		{"/a//b/../c", "", "/a//b/../c"},
		{"a~", "", "/home/user/a~"},
	} {
		got, err := u.Expand(c.path, c.workdir)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
	_, err := u.Expand("~root/x", "")
	require.ErrorContains(t, err, "cannot expand user-specific home dir")
}

func TestRequestUser(t *testing.T) {
	d, _ := directory(t)
	for _, c := range []struct {
		name, fallback string
		basic          *string
		want, fault    string
	}{
		{name: "default", fallback: "user", want: "user"},
		{name: "named", fallback: "user", basic: new("root"), want: "root"},
		{name: "named without default", basic: new("root"), want: "root"},
		{name: "unknown", fallback: "user", basic: new("x"), fault: "invalid username: 'x'"},
		{name: "empty", fallback: "user", basic: new(""), fault: "invalid username: ''"},
		{name: "default missing", fallback: "gone", fault: "invalid default user: 'gone'"},
		{name: "no default", fault: "no user specified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewResolver(d, c.fallback, "")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			require.NoError(t, err)
			if c.basic != nil {
				req.SetBasicAuth(*c.basic, "ignored")
			}
			var u User
			if req, err = r.Attach(req); err == nil {
				u, err = From(req.Context())
			}
			require.Equal(t, c.want, u.Name)
			if c.fault != "" {
				var failed *connect.Error
				require.ErrorAs(t, err, &failed)
				require.Equal(t, connect.CodeUnauthenticated, failed.Code())
				require.Equal(t, c.fault, failed.Message())
			}
		})
	}
	_, err := From(t.Context())
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
	r := NewResolver(d, "user", "/a")
	r.SetDefaults("", "")
	require.Equal(t, "/a", r.Workdir(), "an empty value keeps what there was")
	r.SetDefaults("root", "/b")
	u, err := r.Default()
	require.NoError(t, err)
	require.Equal(t, "root", u.Name)
	require.Equal(t, "/b", r.Workdir())
}
