package harness

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// traces is everything by which a sandbox shows from outside. In the world all processes, sockets and network
// devices are the harness's own; of what all worlds share (cgroups, loop devices) it holds what bears our names.
type traces struct {
	Processes, Mounts, Namespaces, Devices, Sockets, Loops, Cgroups, Files []string
}

// traces are those of this facade while it is stopped, which takes with it what it had made ahead.
func (f *facade) traces() traces {
	f.t.Helper()
	if err := f.stop(); err != nil {
		f.t.Fatalf("stopping the facade: %v", err)
	}
	defer f.start()
	return f.look()
}

// look returns the traces of the moment.
func (f *facade) look() traces {
	return traces{
		Processes:  processes(),
		Mounts:     lines("/proc/self/mountinfo"),
		Namespaces: namespaces(),
		Devices:    devices(),
		Sockets:    sockets(),
		Loops:      loops(f.data),
		Cgroups:    cgroups(f.census.look()),
		Files:      f.files(),
	}
}

// leavesNothing stops the facade and looks again until nothing is there that was not there before, giving what
// ends a moment to end: sockets linger, and the kernel undoes mounts late. Sandboxes outlive the stop, so that one
// that was left shows.
func (f *facade) leavesNothing(t *testing.T, before traces) {
	t.Helper()
	if err := f.stop(); err != nil {
		t.Errorf("stopping the facade: %v", err)
	}
	defer f.start()
	var left traces
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		after := f.look()
		left = traces{
			Processes:  more(before.Processes, after.Processes),
			Mounts:     more(before.Mounts, after.Mounts),
			Namespaces: more(before.Namespaces, after.Namespaces),
			Devices:    more(before.Devices, after.Devices),
			Sockets:    more(before.Sockets, after.Sockets),
			Loops:      more(before.Loops, after.Loops),
			Cgroups:    more(before.Cgroups, after.Cgroups),
			Files:      more(before.Files, after.Files),
		}
		if assert.ObjectsAreEqual(traces{}, left) || time.Now().After(deadline) {
			break
		}
	}
	assert.Equal(t, traces{}, left, "something was left behind")
}

// more is what the second list has more of than the first.
func more(before, after []string) []string {
	had := map[string]int{}
	for _, name := range before {
		had[name]++
	}
	var extra []string
	for _, name := range after {
		if had[name]--; had[name] < 0 {
			extra = append(extra, name)
		}
	}
	return extra
}

// processes are the live processes but the harness itself and the programs that it runs to look.
func processes() []string {
	var all []string
	eachProcess(func(folder string) {
		name, _ := os.ReadFile(filepath.Join(folder, "comm"))
		// Not the number: a facade that was started again is the same to those who look for what it left.
		all = append(all, strings.TrimSpace(string(name)))
	})
	slices.Sort(all)
	return all
}

// namespaces are the kinds and numbers of all namespaces that any process is in.
func namespaces() []string {
	seen := map[string]bool{}
	eachProcess(func(folder string) {
		for _, kind := range []string{"net", "mnt", "pid", "user", "ipc", "uts", "cgroup"} {
			if target, err := os.Readlink(filepath.Join(folder, "ns", kind)); err == nil {
				seen[target] = true
			}
		}
	})
	return sorted(seen)
}

// eachProcess goes through the processes of the world.
func eachProcess(visit func(folder string)) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		if _, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			visit(folder)
		}
	}
}

// devices are the network devices of the world. The folder /sys tells of those of the machine, on which others work too.
func devices() []string {
	var all []string
	for _, line := range lines("/proc/self/net/dev") {
		if name, _, is := strings.Cut(line, ":"); is {
			all = append(all, strings.TrimSpace(name))
		}
	}
	slices.Sort(all)
	return all
}

// numbers are what differs in the path of a socket that is the same.
var numbers = regexp.MustCompile(`[0-9]+`)

// sockets are the listening and bound sockets of the world: by address, and those with a path by its words.
func sockets() []string {
	var all []string
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		for _, line := range lines("/proc/net/" + file)[1:] {
			fields := strings.Fields(line)
			const listening = "0A"
			if len(fields) > 3 && (fields[3] == listening || strings.HasPrefix(file, "udp")) {
				all = append(all, file+" "+fields[1])
			}
		}
	}
	for _, line := range lines("/proc/net/unix")[1:] {
		if fields := strings.Fields(line); len(fields) > 7 {
			all = append(all, "unix "+numbers.ReplaceAllString(fields[7], "N"))
		}
	}
	slices.Sort(all)
	return all
}

// loops are the loop devices whose file is in the data folder, or was.
func loops(data string) []string {
	seen := map[string]bool{}
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range backing {
		for _, line := range lines(file) {
			if strings.HasPrefix(line, data) {
				seen[file+" "+line] = true
			}
		}
	}
	return sorted(seen)
}

// cgroups are the control groups of these boxes: all Isthmuses of a machine keep theirs at one place.
func cgroups(boxes map[string]bool) []string {
	seen := map[string]bool{}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if entry.IsDir() && boxes[entry.Name()] {
			seen[path] = true
		}
		return nil
	})
	return sorted(seen)
}

// forms are the folders of a data folder that hold boxes, by the way in which they are separated.
func forms() []string { return []string{"local", "gvisor", filepath.Join(bareFolder, "local")} }

// census keeps the names of all boxes that a data folder ever held, by looking often.
type census struct {
	data  string
	mu    sync.Mutex
	boxes map[string]bool
}

// count looks until the context ends.
func (c *census) count(ctx context.Context) {
	for ctx.Err() == nil {
		c.look()
		time.Sleep(20 * time.Millisecond)
	}
}

// look returns the names so far.
func (c *census) look() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, form := range forms() {
		for _, name := range names(filepath.Join(c.data, form, "boxes")) {
			c.boxes[name] = true
		}
	}
	return maps.Clone(c.boxes)
}

// files are the paths below a folder of boxes, but for the formatted disks that are kept to be copied, one of
// each size.
func files(folder string) []string {
	kept := filepath.Join(folder, "disks") + "/"
	seen := map[string]bool{}
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && !strings.HasPrefix(path, kept) {
			seen[path] = true
		}
		return nil
	})
	return sorted(seen)
}

func names(folder string) []string {
	entries, _ := os.ReadDir(folder)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func lines(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

func sorted(seen map[string]bool) []string {
	all := make([]string, 0, len(seen))
	for name := range seen {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// files are the paths below the folders of boxes.
func (f *facade) files() []string {
	var all []string
	for _, form := range forms() {
		all = append(all, files(filepath.Join(f.data, form))...)
	}
	return all
}
