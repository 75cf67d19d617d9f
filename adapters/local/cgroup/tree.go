//go:build linux

// Package cgroup limits and measures boxes by control groups, of version 2 or of version 1, whichever of
// the two this machine's controllers are on.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// folder is the one group under which all boxes of this machine are.
const folder = "isthmus"

// Limits are the ceilings of one box.
type Limits struct {
	MemoryBytes int64
	CPUs        int
	Processes   int
}

// Tree is where groups can be made. Roots of version 1 are by controller; version 2 has one, under "".
type Tree struct {
	version int
	roots   map[string]string
}

// ErrNone says that this process can make no control group.
var ErrNone = errors.New("no control group can be made")

// controllers1 are the version 1 controllers that a box uses.
func controllers1() []string { return []string{"memory", "cpu", "cpuacct", "pids", "freezer"} }

// controllers2 are those of version 2; freezing is part of every group there.
func controllers2() []string { return []string{"memory", "cpu", "pids"} }

// Find looks for a place where this process may make groups: the top of the visible version 2 tree when it
// has the memory controller, or (as an ordinary user) the part of it that was delegated, else version 1 in the same
// way.
func Find() (*Tree, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	v2, v1 := parse(string(mounts))
	if v2 != "" && controlled(v2) {
		if err := prepare2(v2); err == nil {
			return &Tree{version: 2, roots: map[string]string{"": filepath.Join(v2, folder)}}, nil
		}
		if own, err := delegated(v2); err == nil {
			return &Tree{version: 2, roots: map[string]string{"": own}}, nil
		}
	}
	return find1(v1)
}

// Unenforced names the limits that this tree cannot enforce, in the words of adapters.Description.
func (t *Tree) Unenforced() []string {
	if t == nil {
		return []string{"memory", "cpu", "pids"}
	}
	if t.version == 2 {
		return nil
	}
	var missing []string
	for _, c := range []string{"memory", "cpu", "pids"} {
		if t.roots[c] == "" {
			missing = append(missing, c)
		}
	}
	return missing
}

// parse reads where the hierarchies are mounted.
func parse(mountinfo string) (v2 string, v1 map[string]string) {
	v1 = map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(mountinfo))
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(tail) < 3 {
			continue
		}
		switch tail[0] {
		case "cgroup2":
			v2 = fields[4]
		case "cgroup":
			for _, option := range strings.Split(tail[2], ",") {
				v1[option] = fields[4]
			}
		}
	}
	return v2, v1
}

// controlled reports whether the version 2 tree has the controllers; a hybrid machine's has none.
func controlled(root string) bool {
	list, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	return err == nil && strings.Contains(" "+strings.TrimSpace(string(list))+" ", " memory ")
}

// prepare2 makes the folder of all boxes and passes the controllers down to it.
func prepare2(root string) error {
	if err := enable(root); err != nil {
		return err
	}
	at := filepath.Join(root, folder)
	if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return enable(at)
}

func enable(group string) error {
	var words []string
	for _, c := range controllers2() {
		words = append(words, "+"+c)
	}
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte(strings.Join(words, " ")), 0)
}

// delegated uses the group that this process is in, when it was given to it (systemd: Delegate=yes). A group
// with processes cannot have groups with controllers below it, so this process first moves into a leaf.
func delegated(root string) (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(own), "\n") {
		path, ok := strings.CutPrefix(line, "0::")
		if !ok || path == "/" {
			continue
		}
		group := filepath.Join(root, strings.TrimSuffix(path, "/facade"))
		leaf := filepath.Join(group, "facade")
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		if err := move(leaf, os.Getpid()); err != nil {
			return "", err
		}
		if err := prepare2(group); err != nil {
			return "", err
		}
		return filepath.Join(group, folder), nil
	}
	return "", ErrNone
}

func find1(mounts map[string]string) (*Tree, error) {
	t := &Tree{version: 1, roots: map[string]string{}}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, c := range controllers1() {
		mount, ok := mounts[c]
		if !ok {
			continue
		}
		// As root at the top; as an ordinary user in the group that this process was started in, if that is the user's.
		for _, above := range []string{mount, filepath.Join(mount, ownGroup(string(own), c))} {
			at := filepath.Join(above, folder)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				problems = append(problems, err)
				continue
			}
			if writable(at) {
				t.roots[c] = at
				break
			}
		}
	}
	if len(t.roots) == 0 {
		return nil, errors.Join(append([]error{ErrNone}, problems...)...)
	}
	return t, nil
}

// ownGroup is the group of a controller of version 1 that a process is in, by its /proc/PID/cgroup.
func ownGroup(text, controller string) string {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return fields[2]
		}
	}
	return "/"
}

// writable reports whether groups can be made in a folder that another user may have made.
func writable(dir string) bool {
	probe := filepath.Join(dir, "probe-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(probe, 0o755); err != nil {
		return false
	}
	return os.Remove(probe) == nil
}

// move puts a process into a group.
func move(group string, pid int) error {
	err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	if err != nil {
		return fmt.Errorf("enter the control group: %w", err)
	}
	return nil
}
