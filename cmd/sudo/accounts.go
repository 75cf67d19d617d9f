package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// databases are the box's own files of users and groups; nothing else is asked.
type databases struct{ passwd, group string }

// account is a user with the group that a command is to run in.
type account struct {
	name, home, shell string
	uid, gid          int
	groups            []int // supplementary, the primary one first
}

// user finds a user by name or by #uid.
func (d databases) user(name string) (account, bool, error) {
	id, numeric := strings.CutPrefix(name, "#")
	var found account
	ok, err := find(d.passwd, 7, func(f []string) bool {
		if f[0] != name && (!numeric || f[2] != id) {
			return false
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		found = account{name: f[0], uid: uid, gid: gid, home: f[5], shell: f[6]}
		return err1 == nil && err2 == nil
	})
	if !ok && err == nil && name == "root" {
		return account{name: "root", home: "/root", shell: "/bin/sh"}, true, nil // a root without passwd
	}
	if found.shell == "" {
		found.shell = "/bin/sh"
	}
	return found, ok, err
}

// gid finds a group by name or by #gid.
func (d databases) gid(name string) (int, error) {
	id, numeric := strings.CutPrefix(name, "#")
	gid := 0
	ok, err := find(d.group, 4, func(f []string) (match bool) {
		if f[0] != name && (!numeric || f[2] != id) {
			return false
		}
		n, err := strconv.Atoi(f[2])
		gid = n
		return err == nil
	})
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, fmt.Errorf("unknown group %s", name)
	}
	return gid, nil
}

// memberships returns the user's groups, the primary one first.
func (d databases) memberships(user string, primary int) ([]int, error) {
	groups := []int{primary}
	_, err := find(d.group, 4, func(f []string) bool {
		n, err := strconv.Atoi(f[2])
		if err == nil && n != primary && slices.Contains(strings.Split(f[3], ","), user) {
			groups = append(groups, n)
		}
		return false
	})
	return groups, err
}

// caller is who runs sudo. One without an entry goes by the number.
func (d databases) caller(uid, gid int) (account, error) {
	a, ok, err := d.user("#" + strconv.Itoa(uid))
	if !ok {
		a = account{name: strconv.Itoa(uid), uid: uid, gid: gid, home: "/", shell: "/bin/sh"}
	}
	return a, err
}

// target is who the command is to run as.
func (d databases) target(o options, caller account) (account, error) {
	t := caller
	if o.hasUser || !o.hasGroup {
		var ok bool
		var err error
		if t, ok, err = d.user(o.user); err != nil {
			return t, err
		}
		if !ok {
			return t, fmt.Errorf("unknown user %s", o.user)
		}
	}
	if err := d.join(&t, o); err != nil {
		return t, err
	}
	return t, nil
}

// join fills the groups in.
func (d databases) join(t *account, o options) error {
	memberships, err := d.memberships(t.name, t.gid)
	if err != nil {
		return err
	}
	t.groups = memberships
	if o.keepGroups {
		if t.groups, err = unix.Getgroups(); err != nil {
			return err
		}
	}
	if !o.hasGroup {
		return nil
	}
	if t.gid, err = d.gid(o.group); err != nil {
		return err
	}
	if !slices.Contains(t.groups, t.gid) {
		t.groups = append([]int{t.gid}, t.groups...)
	}
	return nil
}

// find calls match with each line's fields until it says yes. A file that is not there has no lines.
func find(file string, fields int, match func([]string) bool) (bool, error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("unable to open %s: %s", file, reason(err))
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20) // a group may have many members
	for s.Scan() {
		if parts := strings.Split(s.Text(), ":"); len(parts) == fields && match(parts) {
			return true, nil
		}
	}
	return false, s.Err()
}
