//go:build linux

// Package subid gives the user namespaces of an ordinary user their ids: the user's own is root there, and a
// range of /etc/subuid and one of /etc/subgid are the rest.
package subid

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/adapters/local/idrange"
)

// Count is how many ids a namespace has beside root's.
const Count = idrange.Size - 1

// The programs that write the maps, as only root may do by itself.
const (
	mapUsers  = "newuidmap"
	mapGroups = "newgidmap"
)

// Ranges are the subordinate ids of one user, as the ids of the host: Count of each.
type Ranges struct {
	FirstUID, FirstGID uint64
}

// Find reads the ranges of the user that this process runs as. Its errors say what to do.
func Find() (Ranges, error) {
	for _, tool := range []string{mapUsers, mapGroups} {
		if _, err := exec.LookPath(tool); err != nil {
			return Ranges{}, fmt.Errorf("%s is missing: install the package uidmap (shadow-utils)", tool)
		}
	}
	names := []string{strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username)
	}
	var r Ranges
	var err error
	if r.FirstUID, err = first("/etc/subuid", names); err != nil {
		return Ranges{}, err
	}
	if r.FirstGID, err = first("/etc/subgid", names); err != nil {
		return Ranges{}, err
	}
	return r, nil
}

// Write gives the user namespace that a process was started in its ids, once.
func (r Ranges) Write(ctx context.Context, pid int) error {
	for _, m := range []struct {
		tool  string
		own   int
		first uint64
	}{{mapUsers, os.Getuid(), r.FirstUID}, {mapGroups, os.Getgid(), r.FirstGID}} {
		out, err := exec.CommandContext(ctx, m.tool, strconv.Itoa(pid), "0", strconv.Itoa(m.own), "1",
			"1", strconv.FormatUint(m.first, 10), strconv.Itoa(Count)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", m.tool, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// first finds the range in a file; the last of the names is the one for people.
func first(file string, names []string) (uint64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be read: %w", file, err)
	}
	defer func() { _ = f.Close() }()
	at, err := search(f, names)
	if err != nil {
		name := names[len(names)-1]
		return 0, fmt.Errorf("%s gives %s no range of %d ids: as root, run `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s`",
			file, name, Count, name)
	}
	return at, nil
}

// search returns where the first range of enough ids begins that one of the names owns.
func search(file io.Reader, names []string) (uint64, error) {
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != 3 || !slices.Contains(names, fields[0]) {
			continue
		}
		at, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && count >= Count {
			return at, nil
		}
	}
	return 0, errors.New("there is none")
}
