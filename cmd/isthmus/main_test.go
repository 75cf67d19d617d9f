package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/auth"
)

// isthmus runs one command.
func isthmus(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := command()
	var out bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// must is isthmus that goes well.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := isthmus(t, args...)
	require.NoError(t, err, out)
	return strings.TrimSpace(out)
}

func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(good, []byte("listen: 127.0.0.1:0\n"), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("lisen: x\nlimits: {longest_life: 1}\n"), 0o600))
	data := filepath.Join(dir, "data")
	require.Equal(t, "the configuration is valid", must(t, "serve", "--check-config", "--config", good, "--data", data))
	require.NoDirExists(t, data, "looking changes nothing")
	_, err := isthmus(t, "serve", "--check-config", "--config", bad)
	require.ErrorContains(t, err, "lisen: is not known")
	require.ErrorContains(t, err, "limits.longest_life: must be a time")
	_, err = isthmus(t, "serve", "--check-config", "--config", filepath.Join(dir, "none.yaml"))
	require.ErrorContains(t, err, "there is no configuration file")
	_, err = isthmus(t, "serve", "--check-config", "--config", good, "--listen", "nonsense")
	require.ErrorContains(t, err, "listen: must be host:port", "flags are looked at too")
	t.Setenv("ISTHMUS_API_KEY", "e2b_UPPER")
	_, err = isthmus(t, "serve", "--check-config", "--config", good)
	require.ErrorContains(t, err, "ISTHMUS_API_KEY")
	require.NotContains(t, err.Error(), "UPPER")
}

func TestCheckConfigLooksForTheKeysOfPools(t *testing.T) {
	dir := t.TempDir()
	path, data := filepath.Join(dir, "pools.yaml"), filepath.Join(dir, "data")
	kept, empty := filepath.Join(dir, "kept"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(kept, []byte("secret-value\n"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	pool := func(name, place string) string {
		return "- {name: " + name + ", provider: e2b, api_url: 'https://api.e2b.app', credential: {" + place + "}}\n"
	}
	require.NoError(t, os.WriteFile(path, []byte("pools:\n- {name: here, provider: local}\n"+pool("a", "env: LEFT_OUT_KEY")+
		pool("b", "file: "+kept)+pool("c", "file: "+filepath.Join(dir, "none"))+pool("d", "file: "+empty)), 0o600))
	for _, args := range [][]string{{"serve", "--check-config"}, {"serve"}} {
		_, err := isthmus(t, append(args, "--config", path, "--data", data)...)
		require.ErrorContains(t, err, "pools[1].credential.env: the variable LEFT_OUT_KEY")
		require.ErrorContains(t, err, "pools[3].credential.file: the file with the pool's key")
		require.ErrorContains(t, err, "pools[4].credential.file: the file "+empty)
		require.NotContains(t, err.Error(), "pools[2]")
		require.NotContains(t, err.Error(), "secret-value")
		require.NoDirExists(t, data)
	}
	t.Setenv("LEFT_OUT_KEY", "x")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "none"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(empty, []byte("x"), 0o600))
	must(t, "serve", "--check-config", "--config", path, "--data", data)
}

func TestAGivenKeyIsNotPrintedIntoALog(t *testing.T) {
	require.Equal(t, `"$ISTHMUS_API_KEY"`, printable("e2b_a", "e2b_a", false))
	require.Equal(t, "e2b_a", printable("e2b_a", "e2b_a", true))
	require.Equal(t, "e2b_made", printable("e2b_made", "", false), "nobody else knows the one that a first start made")
	require.Empty(t, printable("", "", false))
	require.False(t, isTerminal(&bytes.Buffer{}))
}

func TestFaultsAreFoundBeforeAnImageIsBuilt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "isthmus.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
listen: 127.0.0.1:0
pools:
- {name: cloud, provider: e2b, api_url: "https://api.example.com", credential: {env: NO_SUCH_VARIABLE}}
- {name: local, provider: local}
`), 0o600))
	out, err := isthmus(t, "serve", "--config", path, "--data", filepath.Join(dir, "data"))
	require.ErrorContains(t, err, "NO_SUCH_VARIABLE")
	require.NotContains(t, out, "There is no base image yet")
}

func TestCommandsWithoutServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	_, err := isthmus(t, "teams", "list", "--data", data)
	require.ErrorContains(t, err, "there is no data folder")
	require.NoDirExists(t, data)
	_, err = isthmus(t, "simulate", "modal", "--data", data)
	require.ErrorContains(t, err, "there is no data folder")
	_, err = isthmus(t, "env", "--data", data)
	require.ErrorContains(t, err, "isthmus serve")

	require.NoError(t, os.MkdirAll(data, 0o700))
	id := must(t, "teams", "create", "one", "--data", data)
	require.Contains(t, must(t, "teams", "list", "--data", data), id)
	key := must(t, "keys", "create", "--team", "one", "--name", "ci", "--data", data)
	require.True(t, auth.Valid(key))
	list := must(t, "keys", "list", "--data", data)
	require.Contains(t, list, auth.Mask(key))
	require.NotContains(t, list, key)
	require.Contains(t, must(t, "sandboxes", "list", "--data", data), "ID")

	backup := filepath.Join(t.TempDir(), "backup")
	must(t, "backup", backup, "--data", data)
	info, err := os.Stat(backup)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	fresh := filepath.Join(t.TempDir(), "fresh")
	must(t, "restore", backup, "--data", fresh)
	require.Equal(t, list, must(t, "keys", "list", "--data", fresh))
	_, err = isthmus(t, "restore", backup, "--data", fresh)
	require.ErrorContains(t, err, "has teams and keys already", "what was revoked since would be back")

	keyID := strings.Fields(strings.Split(list, "\n")[1])[0]
	must(t, "keys", "revoke", keyID, "--data", data)
	require.NotContains(t, must(t, "keys", "list", "--data", data), keyID)
	_, err = isthmus(t, "keys", "revoke", keyID, "--data", data)
	require.ErrorContains(t, err, "no such record")
}

func TestKillNeedsToKnowWhat(t *testing.T) {
	for _, args := range [][]string{{"kill"}, {"kill", "--all", "x"}} {
		_, err := isthmus(t, append([]string{"sandboxes"}, args...)...)
		require.ErrorContains(t, err, "name the sandboxes")
	}
}

func TestOneServerPerFolder(t *testing.T) {
	data := t.TempDir()
	d, err := openData(t.Context(), data, logger(&bytes.Buffer{}, false))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.close()) }()
	_, err = openData(context.Background(), data, logger(&bytes.Buffer{}, false))
	require.ErrorContains(t, err, "has the data folder")
}

// A child that a killed server was starting holds, for moments, its lock and its socket, which can be connected to.
func TestAServerThatWasKilledIsWaitedFor(t *testing.T) {
	data := t.TempDir()
	d, err := openData(t.Context(), data, logger(&bytes.Buffer{}, false))
	require.NoError(t, err)
	socket, err := admin.ListenSocket(data)
	require.NoError(t, err)
	asked := make(chan error, 1)
	go func() {
		conn, err := socket.Accept() // the store's opener has come, found the lock taken, and asks
		if err == nil {
			err = errors.Join(conn.Close(), socket.Close(), d.close())
		}
		asked <- err
	}()
	next, err := openData(t.Context(), data, logger(&bytes.Buffer{}, false))
	require.NoError(t, err)
	require.NoError(t, <-asked)
	require.NoError(t, next.close())
}

func TestEnvironmentLine(t *testing.T) {
	var out bytes.Buffer
	printEnvironment(&out, admin.Environment{APIURL: "http://a", SandboxURL: "http://b", APIKey: "e2b_c"})
	require.Equal(t, "export E2B_API_URL=http://a E2B_SANDBOX_URL=http://b E2B_API_KEY=e2b_c\n", out.String())
	out.Reset()
	printEnvironment(&out, admin.Environment{APIURL: "http://a", SandboxURL: "http://b"})
	require.Contains(t, out.String(), "export E2B_API_URL=http://a E2B_SANDBOX_URL=http://b\n#")
	out.Reset()
	printEnvironment(&out, admin.Environment{APIURL: "https://a.b", Domain: "a.b", Authority: "/d/it's/ca", Bundle: "/d/all", APIKey: "e2b_c"})
	require.Equal(t, `unset E2B_API_URL E2B_SANDBOX_URL; export E2B_DOMAIN=a.b NODE_EXTRA_CA_CERTS='/d/it'\''s/ca' SSL_CERT_FILE='/d/all' E2B_API_KEY=e2b_c`+"\n", out.String())
}

func TestVersion(t *testing.T) {
	require.Contains(t, must(t, "version"), "isthmus dev, envd ")
	require.Equal(t, must(t, "version"), must(t, "--version"))
}
