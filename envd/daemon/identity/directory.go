package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxDatabase bounds how much of a passwd or group file is read: the file belongs to the sandbox, so its size
// is not ours to trust.
const maxDatabase = 8 << 20

// UnknownUserError says that the passwd file has no such user.
type UnknownUserError string

// Error is worded as Go's os/user words it, because upstream shows that text to clients.
func (e UnknownUserError) Error() string { return "user: unknown user " + string(e) }

// Directory looks users and groups up in a root file system. It is safe for use by several goroutines and
// reads the files again only when they have changed.
type Directory struct {
	passwd, group string

	mu     sync.Mutex
	stamp  [2]stamp
	users  map[string]User
	names  map[uint32]string
	groups map[uint32]string
}

// stamp tells one state of a file from another.
type stamp struct {
	inode uint64
	size  int64
	mtime time.Time
}

// NewDirectory looks up in the root file system at root, which is "/" for a daemon inside a sandbox.
func NewDirectory(root string) *Directory {
	return &Directory{passwd: filepath.Join(root, "etc/passwd"), group: filepath.Join(root, "etc/group")}
}

// Lookup finds a user by name. The error is an UnknownUserError, or that of reading the files.
func (d *Directory) Lookup(name string) (User, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refresh(); err != nil {
		return User{}, fmt.Errorf("user: lookup %s: %w", name, err)
	}
	if u, ok := d.users[name]; ok {
		return u, nil
	}
	return User{}, UnknownUserError(name)
}

// UserName names a user id; an id without a name is its number as text.
func (d *Directory) UserName(uid uint32) string {
	return d.name(uid, func() map[uint32]string { return d.names })
}

// GroupName names a group id; an id without a name is its number as text.
func (d *Directory) GroupName(gid uint32) string {
	return d.name(gid, func() map[uint32]string { return d.groups })
}

func (d *Directory) name(id uint32, table func() map[uint32]string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A file that cannot be read leaves ids without names, which is what a listing shows for them anyway.
	_ = d.refresh()
	if name, ok := table()[id]; ok {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// refresh reads both files again when one of them has changed. The caller holds the lock.
func (d *Directory) refresh() error {
	now := [2]stamp{stampOf(d.passwd), stampOf(d.group)}
	if d.users != nil && now == d.stamp {
		return nil
	}
	passwd, err := readLines(d.passwd)
	if err != nil {
		return err
	}
	group, err := readLines(d.group)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.stamp = now
	d.parse(passwd, group)
	return nil
}

func (d *Directory) parse(passwd, group [][]string) {
	d.users, d.names, d.groups = map[string]User{}, map[uint32]string{}, map[uint32]string{}
	for _, f := range passwd {
		u, ok := parseUser(f)
		if !ok {
			continue
		}
		if _, known := d.users[u.Name]; !known {
			d.users[u.Name] = u
		}
		if _, known := d.names[u.UID]; !known {
			d.names[u.UID] = u.Name
		}
	}
	for _, f := range group {
		d.addGroup(f)
	}
}

func parseUser(f []string) (User, bool) {
	if len(f) < 6 || f[0] == "" {
		return User{}, false
	}
	uid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return User{}, false
	}
	gid, err := strconv.ParseUint(f[3], 10, 32)
	if err != nil {
		return User{}, false
	}
	u := User{Name: f[0], UID: uint32(uid), GID: uint32(gid), Groups: []uint32{uint32(gid)}, Home: f[5]}
	if len(f) > 6 {
		u.Shell = f[6]
	}
	if !filepath.IsAbs(u.Home) {
		u.Home = "/"
	}
	return u, true
}

func (d *Directory) addGroup(f []string) {
	if len(f) < 3 || f[0] == "" {
		return
	}
	n, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return
	}
	gid := uint32(n)
	if _, known := d.groups[gid]; !known {
		d.groups[gid] = f[0]
	}
	if len(f) < 4 {
		return
	}
	for name := range strings.SplitSeq(f[3], ",") {
		if u, ok := d.users[name]; ok && u.GID != gid {
			u.Groups = append(u.Groups, gid)
			d.users[name] = u
		}
	}
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	s := stamp{size: info.Size(), mtime: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// readLines splits a colon-separated database. O_NONBLOCK keeps a FIFO in its place from stopping the daemon.
func readLines(path string) ([][]string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDatabase))
	if err != nil {
		return nil, err
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, strings.Split(line, ":"))
		}
	}
	return lines, nil
}
