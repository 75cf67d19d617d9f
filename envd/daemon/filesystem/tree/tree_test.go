package tree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/filesystem"
)

type numbers struct{}

func (numbers) UserName(id uint32) string  { return fmt.Sprintf("u%d", id) }
func (numbers) GroupName(id uint32) string { return fmt.Sprintf("g%d", id) }

// both runs a test with the kernel's openat2 and with the walk that stands in for it.
func both(t *testing.T, test func(t *testing.T, tree *Tree)) {
	t.Run("openat2", func(t *testing.T) { test(t, New(numbers{})) })
	t.Run("walk", func(t *testing.T) {
		tree := New(numbers{})
		tree.noOpenat2.Store(true)
		test(t, tree)
	})
}

// plain removes the links from a temporary folder's own path.
func plain(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func write(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestOpenRefusesTheDaemonItself(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	other := strconv.Itoa(sleeper.Process.Pid)
	self := strconv.Itoa(os.Getpid())
	dir := plain(t)
	write(t, filepath.Join(dir, "file"), "x")
	for name, target := range map[string]string{
		"environ": "/proc/self/environ", "folder": "/proc/self", "root": "/proc/self/root", "good": "file",
		"chain": "environ", "up": "../../../../../../../proc/1",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	tests := []struct {
		path string
		want error
	}{
		{"/proc/self/environ", ErrRefused},
		{"/proc/self/task/" + self + "/environ", ErrRefused},
		{"/proc/" + self + "/status", ErrRefused},
		{"/proc/1/status", ErrRefused},
		{"/proc/1", ErrRefused},
		{"/proc//1/./stat", ErrRefused},
		{"/proc/thread-self/maps", ErrRefused},
		{"/proc/self/fd/0", ErrRefused},
		{"/proc/self/root/etc/passwd", ErrRefused},
		{"/proc/self/cwd", ErrRefused},
		{"/proc/" + other + "/root/etc/passwd", ErrRefused},
		{"/dev/stdin", ErrRefused},
		{"/proc/mounts", ErrRefused},
		{filepath.Join(dir, "environ"), ErrRefused},
		{filepath.Join(dir, "chain"), ErrRefused},
		{filepath.Join(dir, "folder/environ"), ErrRefused},
		{filepath.Join(dir, "root/etc/passwd"), ErrRefused},
		{filepath.Join(dir, "up/status"), ErrRefused},
		{"/proc/" + other + "/status", nil},
		{"/proc/meminfo", nil},
		{"/proc/sys/kernel/ostype", nil},
		{filepath.Join(dir, "good"), nil},
		{dir + "//./good", nil},
		{filepath.Join(dir, "missing"), unix.ENOENT},
		{filepath.Join(dir, "file/below"), unix.ENOTDIR},
		{filepath.Join(dir, "file") + "/", unix.ENOTDIR},
		{"", unix.ENOENT},
	}
	both(t, func(t *testing.T, tree *Tree) {
		for _, test := range tests {
			t.Run(test.path, func(t *testing.T) {
				fd, err := tree.Open(test.path, unix.O_RDONLY, 0)
				if err == nil {
					unix.Close(fd)
				}
				require.ErrorIs(t, err, test.want)
			})
		}
	})
}

func TestThreadsAreTheDaemonItself(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	both(t, func(t *testing.T, tree *Tree) {
		for _, task := range tasks {
			_, err := tree.Open("/proc/"+task.Name()+"/status", unix.O_RDONLY, 0)
			require.ErrorIs(t, err, ErrRefused)
		}
	})
}

func TestOpenDoesNotWaitForAFIFO(t *testing.T) {
	path := filepath.Join(plain(t), "fifo")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	both(t, func(t *testing.T, tree *Tree) {
		_, err := tree.Open(path, unix.O_WRONLY, 0)
		require.ErrorIs(t, err, unix.ENXIO)
	})
}

func TestOpenCreates(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		require.NoError(t, os.Symlink("later", filepath.Join(dir, "dangling")))
		open := func(name string, flags int) error {
			fd, err := tree.Open(filepath.Join(dir, name), flags|unix.O_WRONLY|unix.O_CREAT, 0o666)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
		require.NoError(t, open("new", unix.O_EXCL))
		require.ErrorIs(t, open("new", unix.O_EXCL), unix.EEXIST)
		require.ErrorIs(t, open("dangling", unix.O_EXCL), unix.EEXIST)
		require.NoError(t, open("dangling", 0))
		require.FileExists(t, filepath.Join(dir, "later"))
		require.ErrorIs(t, open("no/folder", 0), unix.ENOENT)
		require.ErrorIs(t, open(".", 0), unix.EISDIR)
	})
}

func TestLoopsAreNotTakenForMagicLinks(t *testing.T) {
	dir := plain(t)
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "a")))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "b")))
	both(t, func(t *testing.T, tree *Tree) {
		_, err := tree.Open(filepath.Join(dir, "a"), unix.O_RDONLY, 0)
		require.ErrorIs(t, err, unix.ELOOP)
	})
}

func TestMakeFolders(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		me := Owner{UID: 12345, GID: 23456}
		created, err := tree.MakeFolders(filepath.Join(dir, "a/b/../c/"), me)
		require.NoError(t, err)
		require.True(t, created)
		for _, name := range []string{"a", "a/c"} {
			var st unix.Stat_t
			require.NoError(t, unix.Stat(filepath.Join(dir, name), &st))
			require.Equal(t, [3]uint32{12345, 23456, unix.S_IFDIR | 0o755}, [3]uint32{st.Uid, st.Gid, st.Mode})
		}
		created, err = tree.MakeFolders(filepath.Join(dir, "a/c"), Owner{})
		require.NoError(t, err)
		require.False(t, created)
		var st unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(dir, "a/c"), &st))
		require.EqualValues(t, 12345, st.Uid, "what is there is left alone")

		file := filepath.Join(dir, "file")
		write(t, file, "")
		_, err = tree.MakeFolders(filepath.Join(file, "x/y"), me)
		require.Equal(t, NotFolderError(file), err)
		_, err = tree.MakeFolders(file, me)
		require.Equal(t, NotFolderError(file), err)
		_, err = tree.MakeFolders("/proc/self/root"+filepath.Join(dir, "z"), me)
		require.ErrorIs(t, err, ErrRefused)
		require.NoFileExists(t, filepath.Join(dir, "z"))
	})
}

func TestRemove(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755))
		write(t, filepath.Join(dir, "kept"), "")
		require.NoError(t, os.Symlink("kept", filepath.Join(dir, "link")))
		for _, name := range []string{"a", "a", "link", "no/such/folder", "kept/below"} {
			require.NoError(t, tree.Remove(filepath.Join(dir, name)), name)
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.ErrorIs(t, tree.Remove("/"), unix.EINVAL)
		require.ErrorIs(t, tree.Remove("/proc/self/root"+filepath.Join(dir, "kept")), ErrRefused)
		require.FileExists(t, filepath.Join(dir, "kept"))
		err = tree.Remove("/proc/sys/kernel/ostype")
		require.ErrorContains(t, err, "/proc/sys/kernel/ostype", "errors name the path that was asked for")
	})
}

func TestMove(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, at("a"), "a")
		write(t, at("b"), "b")
		require.NoError(t, os.Mkdir(at("folder"), 0o755))
		require.NoError(t, tree.Move(at("a"), at("b")))
		text, err := os.ReadFile(at("b"))
		require.NoError(t, err)
		require.Equal(t, "a", string(text))
		require.EqualError(t, tree.Move(at("a"), at("c")),
			fmt.Sprintf("rename %s %s: no such file or directory", at("a"), at("c")))
		require.EqualError(t, tree.Move(at("b"), at("folder")),
			fmt.Sprintf("rename %s %s: file exists", at("b"), at("folder")))
		require.ErrorIs(t, tree.Move("/proc/self/cwd/x", at("x")), ErrRefused)
		require.NoError(t, tree.Move(at("folder")+"/", at("moved")))
	})
}

func TestStat(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, at("file"), "text")
		require.NoError(t, unix.Setxattr(at("file"), "user.e2b.k", []byte("v"), 0))
		require.NoError(t, unix.Setxattr(at("file"), "user.other", []byte("v"), 0))
		require.NoError(t, unix.Setxattr(at("file"), "user.e2b.bad", []byte{0xff}, 0))
		moment := time.Unix(1_600_000_000, 123456789)
		require.NoError(t, os.Chtimes(at("file"), moment, moment))
		require.NoError(t, os.Chown(at("file"), 7, 8))
		require.NoError(t, os.Chmod(at("file"), 0o640|os.ModeSetuid))
		require.NoError(t, os.Mkdir(at("dir"), 0o755))
		require.NoError(t, os.Chmod(at("dir"), 0o755|os.ModeSticky))
		require.NoError(t, unix.Mkfifo(at("fifo"), 0o644))
		require.NoError(t, os.Symlink("hop", at("link")))
		require.NoError(t, os.Symlink("file", at("hop")))
		require.NoError(t, os.Symlink("nowhere", at("broken")))
		require.NoError(t, os.Symlink("loop", at("loop")))
		require.NoError(t, os.Symlink("/proc/self/environ", at("own")))

		file, dirType := filesystem.FileType_FILE_TYPE_FILE, filesystem.FileType_FILE_TYPE_DIRECTORY
		tests := []struct {
			name        string
			kind        filesystem.FileType
			mode        uint32
			permissions string
			target      string
		}{
			{"file", file, 0o640, "urw-r-----", ""},
			{"dir", dirType, 0o755, "dtrwxr-xr-x", ""},
			{"fifo", 0, 0o644, "prw-r--r--", ""},
			{"link", file, 0o640, "Lrwxrwxrwx", at("file")},
			{"broken", 0, 0o777, "Lrwxrwxrwx", at("broken")},
			{"loop", 0, 0o777, "Lrwxrwxrwx", at("loop")},
			{"own", 0, 0o777, "Lrwxrwxrwx", at("own")},
		}
		for _, test := range tests {
			entry, err := tree.Stat(at(test.name))
			require.NoError(t, err)
			require.Equal(t, test.name, entry.Name)
			require.Equal(t, at(test.name), entry.Path)
			require.Equal(t, test.kind, entry.Type, test.name)
			require.Equal(t, test.mode, entry.Mode, test.name)
			require.Equal(t, test.permissions, entry.Permissions)
			require.Equal(t, test.target, entry.GetSymlinkTarget(), test.name)
		}
		entry, err := tree.Stat(at("file"))
		require.NoError(t, err)
		require.EqualValues(t, 4, entry.Size)
		require.Equal(t, "u7", entry.Owner)
		require.Equal(t, "g8", entry.Group)
		require.True(t, moment.Equal(entry.ModifiedTime.AsTime()))
		require.Equal(t, map[string]string{"k": "v"}, entry.Metadata)
		entry, err = tree.Stat(at("link"))
		require.NoError(t, err)
		require.EqualValues(t, 3, entry.Size)
		require.Equal(t, "u0", entry.Owner)
		require.Equal(t, map[string]string{"k": "v"}, entry.Metadata)
		_, err = tree.Stat(at("missing"))
		require.EqualError(t, err, "lstat "+at("missing")+": no such file or directory")
		entry, err = tree.Stat(dir + "/dir/../file")
		require.NoError(t, err)
		require.Equal(t, dir+"/dir/../file", entry.Path, "paths are answered as they were sent")
		_, err = tree.Stat("/proc/self/environ")
		require.ErrorIs(t, err, ErrRefused)
	})
}

func TestList(t *testing.T) {
	both(t, func(t *testing.T, tree *Tree) {
		dir := plain(t)
		at := func(name string) string { return filepath.Join(dir, name) }
		require.NoError(t, os.MkdirAll(at("subdir1/subdir1_1"), 0o755))
		require.NoError(t, os.MkdirAll(at("subdir2"), 0o755))
		write(t, at(".hidden"), "")
		write(t, at("file1.txt"), "")
		write(t, at("subdir1/file"), "")
		write(t, at("subdir1/subdir1_1/deep"), "")
		require.NoError(t, os.Symlink("subdir1", at("link")))
		names := func(path string, depth uint32) []string {
			entries, err := tree.List(context.Background(), path, depth)
			require.NoError(t, err)
			var found []string
			for _, entry := range entries {
				rel, err := filepath.Rel(path, entry.Path)
				require.NoError(t, err)
				found = append(found, rel)
			}
			return found
		}
		one := []string{".hidden", "file1.txt", "link", "subdir1", "subdir2"}
		require.Equal(t, one, names(dir, 0))
		require.Equal(t, one, names(dir, 1))
		require.Equal(t, []string{".hidden", "file1.txt", "link", "subdir1", "subdir1/file", "subdir1/subdir1_1",
			"subdir1/subdir1_1/deep", "subdir2"}, names(dir, 3))
		require.Equal(t, []string{"file", "subdir1_1"}, names(at("link"), 1), "a link at the start is followed")

		for path, want := range map[string]error{
			at("missing"): unix.ENOENT, at("file1.txt"): unix.ENOTDIR, "/proc/1": ErrRefused,
		} {
			_, err := tree.List(context.Background(), path, 1)
			require.ErrorIs(t, err, want)
		}
		entries, err := tree.List(context.Background(), "/proc", 2)
		require.NoError(t, err, "the daemon's own folder shows no contents, and fails nothing")
		for _, entry := range entries {
			require.NotEqual(t, "/proc/1", filepath.Dir(entry.Path))
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = tree.List(ended, dir, 1)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestReplaceMetadata(t *testing.T) {
	path := filepath.Join(plain(t), "file")
	write(t, path, "")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, unix.Setxattr(path, "user.other", []byte("v"), 0))
	long := string(make([]byte, 1500))
	for _, want := range []map[string]string{{"a": "1", "b": long}, {"b": "2", "c": ""}, nil} {
		require.NoError(t, ReplaceMetadata(int(file.Fd()), want))
		require.Equal(t, len(want), len(metadata(path)))
		for key, value := range want {
			require.Equal(t, value, metadata(path)[key])
		}
	}
	n, err := unix.Getxattr(path, "user.other", make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
