// Command sudo is the sudo of the boxes: a small set-user-id program that runs a command as root or as
// another user, without a password, a daemon, PAM, sudoers or name look-ups. In a box everyone may become
// root: that is the point of a box, whose root is nobody outside. Options, environment, exit codes and the
// words of its errors follow the sudo that programs know.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// databases are the files that name users and groups.
const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// noNewPrivileges is sudo's own sentence.
const noNewPrivileges = `The "no new privileges" flag is set, which prevents sudo from running as root.`

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(o)
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sudo: "+err.Error())
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
	}
	os.Exit(1)
}

// run does what the options ask. It returns only when no command took the place of this process.
func run(o options) error {
	switch {
	case o.help:
		fmt.Print("sudo - execute a command as another user\n\n" + usage)
		return nil
	case o.version:
		fmt.Println("Sudo version 1.9.13 (Isthmus)")
		return nil
	}
	if err := privileged(); err != nil {
		return err
	}
	d := databases{passwd: passwdFile, group: groupFile}
	caller, err := d.caller(os.Getuid(), os.Getgid())
	if err != nil {
		return err
	}
	target, err := d.target(o, caller)
	if err != nil {
		return err
	}
	switch {
	case o.list:
		return list(o, caller)
	case o.validate, o.forget && len(o.command) == 0 && !o.login && !o.shell:
		return nil // no password is ever asked for, so there is nothing to keep or to forget
	}
	c, err := compose(o, caller, target, os.Environ())
	if err != nil {
		return err
	}
	return c.run()
}

// privileged says why this process is not root, if it is not.
func privileged() error {
	if os.Geteuid() == 0 {
		return nil
	}
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && set == 1 {
		return fmt.Errorf("%s", noNewPrivileges)
	}
	return errors.New(os.Args[0] + " must be owned by uid 0 and have the setuid bit set")
}

// list answers -l: everything is allowed, so the only question left is whether the command is there.
func list(o options, caller account) error {
	if len(o.command) == 0 {
		host, _ := os.Hostname()
		fmt.Printf("User %s may run the following commands on %s:\n    (ALL : ALL) NOPASSWD: ALL\n", caller.name, host)
		return nil
	}
	file, err := lookPath(o.command[0])
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(append([]string{file}, o.command[1:]...), " "))
	return nil
}
