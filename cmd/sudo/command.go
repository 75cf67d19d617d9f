package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is a program ready to run.
type command struct {
	file       string
	argv, env  []string
	as         account
	dir        string // "" is where we are
	home       bool   // dir is a home, which may be missing
	background bool
	closeFrom  int
}

// compose makes the command of the options.
func compose(o options, caller, target account, env []string) (command, error) {
	c := command{argv: o.command, as: target, dir: o.dir, background: o.background, closeFrom: o.closeFrom}
	switch {
	case o.login:
		c.file = target.shell
		c.argv = shellArgs("-"+filepath.Base(c.file), o.command)
		if c.dir == "" {
			c.dir, c.home = target.home, true
		}
	case o.shell:
		if c.file = caller.shell; os.Getenv("SHELL") != "" {
			c.file = os.Getenv("SHELL")
		}
		c.argv = shellArgs(c.file, o.command)
	default:
		file, err := lookPath(o.command[0])
		if err != nil {
			return c, err
		}
		c.file = file
	}
	c.env = environment(o, caller, target, env, strings.Join(append([]string{c.file}, c.argv[1:]...), " "))
	return c, nil
}

// shellArgs are a shell's arguments: it runs the command, if there is one, with every special character
// escaped.
func shellArgs(name string, args []string) []string {
	if len(args) == 0 {
		return []string{name}
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return []string{name, "-c", strings.Join(quoted, " ")}
}

// quote escapes what a shell would take for its own, except $: variables are the target's to expand.
func quote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_-$", c) >= 0
		switch {
		case c == '\n':
			b.WriteString("'\n'") // escaped, it would vanish
			continue
		case !plain:
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// lookPath finds a command in the secure path.
func lookPath(name string) (string, error) {
	if name == "" {
		return "", errors.New(": command not found")
	}
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(securePath) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	for _, c := range candidates {
		if fi, err := os.Stat(c); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return c, nil
		}
	}
	return "", fmt.Errorf("%s: command not found", name)
}

// run becomes the target and executes the command in this process's place, so that its terminal, its signals
// and its exit code are its own. In the background it is a child instead.
func (c command) run() error {
	if err := c.become(); err != nil {
		return err
	}
	if c.dir != "" {
		err := os.Chdir(c.dir)
		switch {
		case err != nil && c.home:
			fmt.Fprintf(os.Stderr, "sudo: unable to change directory to %s: %s\n", c.dir, reason(err))
		case err != nil:
			return fmt.Errorf("unable to change directory to %s: %s", c.dir, reason(err))
		}
	}
	unix.Umask(unix.Umask(0) | 0o022)
	if c.background {
		return c.start()
	}
	// An old kernel has no close_range: then the command keeps what the caller left open.
	_ = unix.CloseRange(uint(c.closeFrom), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	err := syscall.Exec(c.file, c.argv, c.env)
	if errors.Is(err, syscall.ENOEXEC) { // a script without an interpreter line
		err = syscall.Exec("/bin/sh", append([]string{"sh", c.file}, c.argv[1:]...), c.env)
	}
	return fmt.Errorf("unable to execute %s: %s", c.file, reason(err))
}

func (c command) start() error {
	p := exec.Cmd{Path: c.file, Args: c.argv, Env: c.env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := p.Start(); err != nil {
		return fmt.Errorf("unable to execute %s: %s", c.file, reason(err))
	}
	return p.Process.Release()
}

// become changes to the target's identity, for good.
func (c command) become() error {
	if err := syscall.Setgroups(c.as.groups); err != nil {
		return fmt.Errorf("unable to set supplementary group IDs: %s", reason(err))
	}
	if err := syscall.Setresgid(c.as.gid, c.as.gid, c.as.gid); err != nil {
		return fmt.Errorf("unable to change to runas gid (%d, %d): %s", c.as.gid, c.as.gid, reason(err))
	}
	if err := syscall.Setresuid(c.as.uid, c.as.uid, c.as.uid); err != nil {
		return fmt.Errorf("unable to change to runas uid (%d, %d): %s", c.as.uid, c.as.uid, reason(err))
	}
	return nil
}

// reason is the system's word for an error, as C programs print it.
func reason(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	s := errno.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
