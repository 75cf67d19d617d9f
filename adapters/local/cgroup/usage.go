//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what a group uses now. Memory is without what the kernel could drop at once; Cache is the page
// cache part. Bytes.
type Usage struct {
	CPU           time.Duration
	Memory, Cache int64
}

// CPU reads the processor time alone, which costs a part of what Usage costs. A group that has used none since a
// Usage is as it was then, but for what the kernel dropped of its cache.
func (g *Group) CPU() (time.Duration, error) {
	if g.Version == 2 {
		micros, err := fields(filepath.Join(g.Paths[""], "cpu.stat"), "usage_usec")
		return time.Duration(micros[0]) * time.Microsecond, err
	}
	path, ok := g.Paths["cpuacct"]
	if !ok {
		return 0, nil
	}
	nanos, err := number(filepath.Join(path, "cpuacct.usage"))
	return time.Duration(nanos), err
}

// Usage reads the group's counters.
func (g *Group) Usage() (Usage, error) {
	cpu, err := g.CPU()
	if err != nil {
		return Usage{}, err
	}
	u := Usage{CPU: cpu}
	if g.Version == 2 {
		return u.memory(g.Paths[""], "memory.current", "file", "inactive_file")
	}
	path, ok := g.Paths["memory"]
	if !ok {
		return u, nil
	}
	return u.memory(path, "memory.usage_in_bytes", "total_cache", "total_inactive_file")
}

// memory fills the memory part in: what is used counts without cache that nobody has touched lately, as
// free(1) and E2B do.
func (u Usage) memory(path, total, cache, inactive string) (Usage, error) {
	used, err := number(filepath.Join(path, total))
	if err != nil {
		return Usage{}, err
	}
	parts, err := fields(filepath.Join(path, "memory.stat"), cache, inactive)
	if err != nil {
		return Usage{}, err
	}
	u.Memory, u.Cache = max(used-parts[1], 0), parts[0]
	return u, nil
}

func number(file string) (int64, error) {
	text, err := read(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
}

// fields reads the values of lines "name value". There are as many as names, zeros with an error.
func fields(file string, names ...string) ([]int64, error) {
	values := make([]int64, len(names))
	text, err := read(file)
	if err != nil {
		return values, err
	}
	for i, name := range names {
		_, rest, found := strings.Cut("\n"+text, "\n"+name+" ")
		if !found {
			return values, fmt.Errorf("%s has no %s", filepath.Base(file), name)
		}
		value, _, _ := strings.Cut(rest, "\n")
		if values[i], err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
			return values, err
		}
	}
	return values, nil
}

// read reads a file of the kernel's, which it answers at once: no poller waits for it, as one does for an os.File.
func read(file string) (string, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	var buffer [8 << 10]byte
	var text strings.Builder
	for {
		n, err := unix.Read(fd, buffer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", &os.PathError{Op: "read", Path: file, Err: err}
		}
		if n == 0 {
			return text.String(), nil
		}
		text.Write(buffer[:n])
	}
}
