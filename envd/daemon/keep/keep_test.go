package keep

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// image makes the same root file system each time.
func image(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"bin", "etc/deep/er", "home/user", "gone/with/all", "was-folder/in", "a", "a-b", "proc"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	for _, file := range []string{"bin/tool", "etc/config", "etc/deep/er/one", "home/user/.profile", "gone/with/all/them", "was-folder/in/it", "a/x", "a-b/x", "was-file", "proc/cpuinfo"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte("image "+file), 0o644))
	}
	require.NoError(t, os.Symlink("etc/config", filepath.Join(root, "link")))
	old := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		return touch(path, old)
	}))
	return root
}

func keeper(t *testing.T, root, folder string) *Keep {
	t.Helper()
	k, err := open(root, folder, map[string]bool{filepath.Join(root, "proc"): true})
	require.NoError(t, err)
	return k
}

// shown is what programs see of a root file system.
func shown(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if path == root {
			return nil
		}
		if path == filepath.Join(root, "proc") {
			return fs.SkipDir
		}
		var stat syscall.Stat_t
		require.NoError(t, syscall.Lstat(path, &stat))
		content := ""
		switch {
		case entry.Type().IsRegular():
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			content = fmt.Sprintf("%x", sha256.Sum256(text))
		case entry.Type()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
			require.NoError(t, err)
		}
		records, err := attributes(path)
		require.NoError(t, err)
		links := uint64(1)
		if !entry.IsDir() {
			links = stat.Nlink
		}
		all[path[len(root):]] = fmt.Sprintf("%o %d:%d %d links %v %q %v", stat.Mode, stat.Uid, stat.Gid, links, stat.Mtim, content, records)
		return nil
	}))
	return all
}

// moved keeps what was changed in a root and brings it into a fresh one.
func moved(t *testing.T, change func(root string)) (before, after map[string]string, archive int64) {
	t.Helper()
	root, folder := image(t), t.TempDir()
	k := keeper(t, root, folder)
	require.NoError(t, k.Index(t.Context()))
	change(root)
	require.NoError(t, k.Save(t.Context()))
	fresh := image(t)
	next := keeper(t, fresh, folder)
	require.NoError(t, next.Index(t.Context()))
	require.NoError(t, next.Restore(t.Context()))
	info, err := os.Stat(filepath.Join(folder, archiveName))
	require.NoError(t, err)
	return shown(t, root), shown(t, fresh), info.Size()
}

func TestEverythingThatWasChangedComesBack(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("owners are those of this user: the test is run by root in the gate")
	}
	large := make([]byte, 3<<20)
	before, after, _ := moved(t, func(root string) {
		at := func(name string) string { return filepath.Join(root, name) }
		require.NoError(t, os.WriteFile(at("home/user/new"), large, 0o600))
		require.NoError(t, os.WriteFile(at("etc/config"), []byte("other"), 0o644))
		require.NoError(t, touch(at("etc/config"), time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC))) // the time hides it
		require.NoError(t, os.Chmod(at("bin/tool"), 0o4755))
		require.NoError(t, os.RemoveAll(at("gone")))
		require.NoError(t, os.RemoveAll(at("was-folder")))
		require.NoError(t, os.WriteFile(at("was-folder"), []byte("a file now"), 0o644))
		require.NoError(t, os.Remove(at("was-file")))
		require.NoError(t, os.MkdirAll(at("was-file/with/more"), 0o700))
		require.NoError(t, os.Remove(at("link")))
		require.NoError(t, os.Symlink("nowhere", at("link")))
		require.NoError(t, os.Link(at("home/user/new"), at("home/user/other name")))
		require.NoError(t, unix.Mkfifo(at("home/user/pipe"), 0o640))
		require.NoError(t, os.Rename(at("etc/deep"), at("etc/moved")))
		require.NoError(t, os.RemoveAll(at("a")))
		if os.Getuid() == 0 {
			require.NoError(t, os.Lchown(at("a-b/x"), 1000, 1001))
			require.NoError(t, unix.Setxattr(at("bin/tool"), "security.capability", []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0))
		}
		require.NoError(t, os.WriteFile(at("proc/cpuinfo"), []byte("what is mounted is not looked into"), 0o644))
	})
	require.Equal(t, before, after)
}

func TestWhatWasNotChangedIsNotKept(t *testing.T) {
	_, _, empty := moved(t, func(string) {})
	require.Less(t, empty, int64(4<<10), "an archive of nothing")
}

// Whatever programs do, the order of the walk and of the index must meet.
func TestAnyChangesComeBack(t *testing.T) {
	names := []string{"a", "a-b", "a/x", "a/x/y", "b", "b!", "b/c", "home", "home/user", "etc/deep", "etc/deep/er"}
	for seed := range uint64(25) {
		dice := rand.New(rand.NewPCG(seed, 1))
		before, after, _ := moved(t, func(root string) {
			for range 12 {
				path := filepath.Join(root, names[dice.IntN(len(names))])
				switch dice.IntN(4) {
				case 0:
					_ = os.RemoveAll(path)
				case 1:
					_ = os.MkdirAll(path, 0o755)
				case 2:
					_ = os.WriteFile(path, []byte(fmt.Sprint(dice.Int())), 0o644)
				case 3:
					_ = os.Rename(path, filepath.Join(root, names[dice.IntN(len(names))]))
				}
			}
		})
		require.Equal(t, before, after, "seed %d", seed)
	}
}

func TestASecondSaveKeepsAllAgain(t *testing.T) {
	folder := t.TempDir()
	write := func(root, name string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	first := image(t)
	k := keeper(t, first, folder)
	require.NoError(t, k.Index(t.Context()))
	require.ErrorIs(t, k.Restore(t.Context()), fs.ErrNotExist)
	write(first, "one")
	require.NoError(t, k.Save(t.Context()))
	write(first, "two")
	require.NoError(t, k.Save(t.Context()))
	second := image(t)
	k = keeper(t, second, folder)
	require.NoError(t, k.Index(t.Context()))
	require.NoError(t, k.Restore(t.Context()))
	write(second, "three")
	require.NoError(t, k.Save(t.Context()))
	third := image(t)
	require.NoError(t, keeper(t, third, folder).Restore(t.Context()))
	require.Equal(t, shown(t, second), shown(t, third))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, k.Save(stopped), context.Canceled)
}

func TestMountsAreRead(t *testing.T) {
	list := filepath.Join(t.TempDir(), "mountinfo")
	require.NoError(t, os.WriteFile(list, []byte("1 0 0:1 / / rw - overlay o rw\n2 1 0:2 / /with\\040space rw - tmpfs t rw\n3 1 0:3 /h /etc/hosts rw - ext4 d rw\n"), 0o600))
	all, err := mounted(list)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"/with space": true, "/etc/hosts": true}, all)
}

// asFirst is the variable under which this program is the first process of a namespace.
const asFirst = "ISTHMUS_TEST_FIRST"

func TestFreeze(t *testing.T) {
	if os.Getenv(asFirst) != "" {
		freezes(t)
		return
	}
	require.Error(t, Freeze(t.Context()), "a process that is not the first of its box stops nothing")
	command := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "/proc/self/exe", "-test.run=^TestFreeze$", "-test.v")
	command.Args[len(command.Args)-3] = os.Args[0]
	command.Env = append(os.Environ(), asFirst+"=1")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "all stood still")
}

// freezes looks that programs write no more while they are stopped, and do afterwards.
func freezes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ticks")
	command := exec.Command("sh", "-c", `(while :; do echo x >>"$0"; done) & while :; do echo y >>"$0"; done`, file)
	require.NoError(t, command.Start())
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	grows := func(than int64) func() bool { return func() bool { return size() > than } }
	require.Eventually(t, grows(0), 30*time.Second, time.Millisecond)
	require.NoError(t, Freeze(t.Context()))
	still := size()
	time.Sleep(50 * time.Millisecond) // nothing is to come about
	require.Equal(t, still, size())
	require.NoError(t, Thaw())
	require.Eventually(t, grows(still), 30*time.Second, time.Millisecond)
	require.NoError(t, Freeze(t.Context()))
	fmt.Println("all stood still")
}
