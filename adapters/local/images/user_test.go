package images

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters/local/subid"
)

// ordinary is the user of these tests, made by them and removed afterwards.
const ordinary = "isthmus-images"

// TestAsAnOrdinaryUser runs the tests of imports again, as a user who has nothing but a range of subordinate
// ids.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // this is that run
	}
	id := uint32(makeUser(t))
	home, err := os.MkdirTemp("", "isthmus-images-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	require.NoError(t, os.Chown(home, int(id), int(id)))
	binary := filepath.Join(home, "images.test")
	out, err := exec.Command("install", "-m", "0755", os.Args[0], binary).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(binary, "-test.v", "-test.run", "^(TestImport|TestUnpack|TestMany|TestSweep|TestCollect|TestTheHelper)")
	cmd.Env = append(os.Environ(), "TMPDIR="+home, "HOME="+home)
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Run(), "%s", &log)
	require.Contains(t, log.String(), "--- PASS: TestTheHelperWaitsForItsIDs")
	require.NotContains(t, log.String(), "--- SKIP")
	left, err := filepath.Glob(filepath.Join(home, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{binary}, left, "nothing else is left in the user's folder")
}

// makeUser makes the ordinary user with a range of subordinate ids, and returns its id.
func makeUser(t *testing.T) int {
	t.Helper()
	if _, err := user.Lookup(ordinary); err != nil {
		out, err := exec.Command("useradd", "--no-create-home", ordinary).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { _ = exec.Command("userdel", ordinary).Run() })
	u, err := user.Lookup(ordinary)
	require.NoError(t, err)
	id, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	return id
}

// Whether the ids are there before the helper looks is a race that it must not lose in any of many rounds. When it was
// mended 200 were run; a round takes seconds with the race detector.
func TestTheHelperWaitsForItsIDs(t *testing.T) {
	if os.Getuid() == 0 {
		return // TestAsAnOrdinaryUser runs it
	}
	ids, err := subid.Find()
	require.NoError(t, err)
	s, layer := newStore(t), pack(t, small()...)
	for range 30 {
		dir := filepath.Join(s.dir, "round")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, s.unpack(t.Context(), dir, bytes.NewReader(layer)))
		fi, err := os.Lstat(filepath.Join(dir, "srv"))
		require.NoError(t, err)
		require.EqualValues(t, os.Getuid(), fi.Sys().(*syscall.Stat_t).Uid)
		fi, err = os.Lstat(filepath.Join(dir, "srv/mine"))
		require.NoError(t, err)
		require.EqualValues(t, ids.FirstUID+33-1, fi.Sys().(*syscall.Stat_t).Uid)
		require.NoError(t, s.remove(t.Context(), dir))
		require.NoDirExists(t, dir)
	}
}

func TestTheHelperDoesNothingUnasked(t *testing.T) {
	dir := t.TempDir()
	for _, stream := range []string{"", "go", "no\n"} {
		require.ErrorContains(t, Help(t.Context(), helpRemove, dir, bytes.NewReader([]byte(stream))), "not told to go on")
	}
	require.DirExists(t, dir)
	require.NoError(t, Help(t.Context(), helpRemove, dir, bytes.NewReader([]byte(goOn))))
	require.NoDirExists(t, dir)
}
