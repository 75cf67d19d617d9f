package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want func(*options)
	}{
		{"id -u", func(o *options) { o.command = []string{"id", "-u"} }},
		{"-nu bob -- -x", func(o *options) { o.user, o.hasUser, o.command = "bob", true, []string{"-x"} }},
		{"-ubob A=1 -H B=2 c D=3", func(o *options) {
			o.user, o.hasUser, o.setHome, o.set, o.command = "bob", true, true, []string{"A=1", "B=2"}, []string{"c", "D=3"}
		}},
		{"--user=bob --group staff --chdir /x c", func(o *options) {
			o.user, o.hasUser, o.group, o.hasGroup, o.dir, o.command = "bob", true, "staff", true, "/x", []string{"c"}
		}},
		{"-E c", func(o *options) { o.keepAll, o.command = true, []string{"c"} }},
		{"--preserve-env=A,B c", func(o *options) { o.keep, o.command = []string{"A", "B"}, []string{"c"} }},
		{"-i", func(o *options) { o.login = true }},
		{"-sb c", func(o *options) { o.shell, o.background, o.command = true, true, []string{"c"} }},
		{"-k", func(o *options) { o.forget = true }},
		{"-v", func(o *options) { o.validate = true }},
		{"-l", func(o *options) { o.list = true }},
		{"-h", func(o *options) { o.help = true }},
		{"-S -p x -C 7 c", func(o *options) { o.closeFrom, o.command = 7, []string{"c"} }},
	} {
		want := options{user: "root", closeFrom: 3}
		c.want(&want)
		got, err := parse(strings.Fields(c.args))
		require.NoError(t, err, c.args)
		if len(got.command) == 0 {
			got.command = nil
		}
		require.Equal(t, want, got, c.args)
	}
}

func TestParseErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":            "a command is required",
		"-u":          "option requires an argument -- 'u'",
		"--user":      "option '--user' requires an argument",
		"--nothing c": "unrecognized option '--nothing'",
		"-Z c":        "invalid option -- 'Z'",
		"-is":         "you may not specify both the -i and -s options",
		"-C 2 c":      "the argument to -C must be a number greater than or equal to 3",
		"-h host c":   "a remote host may only be specified when listing privileges.",
		"-e file":     "editing files is not supported here: run the editor itself with sudo",
		"-T 5 c":      "sorry, you are not allowed set a command timeout: use timeout(1)",
		"-v c":        "a command may not be given with the -v option",
	} {
		_, err := parse(strings.Fields(args))
		require.EqualError(t, err, want, args)
	}
}

func testDatabases(t *testing.T) databases {
	t.Helper()
	dir := t.TempDir()
	d := databases{passwd: filepath.Join(dir, "passwd"), group: filepath.Join(dir, "group")}
	require.NoError(t, os.WriteFile(d.passwd, []byte("root:x:0:0:root:/root:/bin/bash\nbroken\nbob:x:7:8:Bob,,,:/home/bob:\n"), 0o600))
	require.NoError(t, os.WriteFile(d.group, []byte("root:x:0:\nbob:x:8:\nstaff:x:50:alice,bob\nvideo:x:44:bob\n"), 0o600))
	return d
}

func TestTarget(t *testing.T) {
	d := testDatabases(t)
	caller, err := d.caller(1234, 99)
	require.NoError(t, err)
	require.Equal(t, account{name: "1234", uid: 1234, gid: 99, home: "/", shell: "/bin/sh"}, caller)
	for _, c := range []struct {
		args string
		want account
	}{
		{"c", account{name: "root", home: "/root", shell: "/bin/bash", groups: []int{0}}},
		{"-u bob c", account{name: "bob", uid: 7, gid: 8, home: "/home/bob", shell: "/bin/sh", groups: []int{8, 50, 44}}},
		{"-u #7 -g video c", account{name: "bob", uid: 7, gid: 44, home: "/home/bob", shell: "/bin/sh", groups: []int{8, 50, 44}}},
		{"-g #50 c", account{name: "1234", uid: 1234, gid: 50, home: "/", shell: "/bin/sh", groups: []int{50, 99}}},
	} {
		o, err := parse(strings.Fields(c.args))
		require.NoError(t, err)
		got, err := d.target(o, caller)
		require.NoError(t, err, c.args)
		require.Equal(t, c.want, got, c.args)
	}
	_, err = d.target(options{user: "eve", hasUser: true}, caller)
	require.EqualError(t, err, "unknown user eve")
	_, err = d.target(options{user: "bob", hasUser: true, group: "none", hasGroup: true}, caller)
	require.EqualError(t, err, "unknown group none")
}

func TestEnvironment(t *testing.T) {
	caller := account{name: "user", uid: 1000, gid: 1000, home: "/home/user", shell: "/bin/bash"}
	root := account{name: "root", home: "/root", shell: "/bin/sh"}
	now := []string{"HOME=/home/user", "TERM=xterm", "LC_ALL=C", "A=1", "B=2", "LD_PRELOAD=x", "PATH=/evil", "BASH_FUNC_x%%=() { :; }", "SHELL=/bin/zsh", "https_proxy=p"}
	for _, c := range []struct{ args, has, lacks string }{
		{"c", "HOME=/root TERM=xterm LC_ALL=C https_proxy=p PATH=" + securePath + " USER=root LOGNAME=root SHELL=/bin/sh SUDO_USER=user SUDO_UID=1000 SUDO_GID=1000 SUDO_COMMAND=cmd", "A= LD_PRELOAD"},
		{"-E c", "HOME=/home/user A=1 SHELL=/bin/zsh PATH=" + securePath, "LD_PRELOAD BASH_FUNC"},
		{"-E -H c", "HOME=/root A=1", "LD_PRELOAD"},
		{"--preserve-env=B c", "B=2 HOME=/root", "A="},
		{"X=y PATH=/p c", "X=y PATH=/p", "A="},
		{"-i", "HOME=/root SHELL=/bin/sh", "A="},
	} {
		o, err := parse(strings.Fields(c.args))
		require.NoError(t, err)
		env := environment(o, caller, root, now, "cmd")
		for _, w := range strings.Fields(c.has) {
			require.Contains(t, env, w, c.args)
		}
		for _, w := range strings.Fields(c.lacks) {
			require.NotContains(t, strings.Join(env, "\n"), w, c.args)
		}
	}
}

// TestAsOrdinaryUser runs the built program, set-user-id, as a user who is not root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make a set-user-id program and to be another user")
	}
	dir, err := os.MkdirTemp("", "sudo-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "sudo")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	fi, err := os.Stat(file)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(2_500_000))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bare"), []byte("echo bare \"$@\"\n"), 0o755))
	require.NoError(t, os.Chmod(file, 0o755|os.ModeSetuid))

	run := func(args ...string) (string, int) {
		c := exec.Command(file, args...)
		c.Dir, c.Env = dir, []string{"HOME=/", "SECRET=1", "PATH=/nowhere", "TERM=dumb", "SHELL=/bin/sh"}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.CombinedOutput()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return string(out), c.ProcessState.ExitCode()
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"id", "-u"}, "0\n", 0},
		{[]string{"-n", "sh", "-c", "id -G; exit 7"}, "0\n", 7},
		{[]string{"-u", "daemon", "sh", "-c", "id -un; echo $HOME $SUDO_USER $SUDO_UID [$SECRET]"}, "daemon\n/usr/sbin nobody 65534 []\n", 0},
		{[]string{"-g", "daemon", "sh", "-c", "id -un; id -gn"}, "nobody\ndaemon\n", 0},
		{[]string{"-E", "sh", "-c", "echo $SECRET $HOME"}, "1 /\n", 0},
		{[]string{"A=b c", "sh", "-c", "echo $A"}, "b c\n", 0},
		{[]string{"-s", "echo", "a  b", "c;d", "x\ny"}, "a  b c;d x\ny\n", 0},
		{[]string{"-D", "/usr", "pwd"}, "/usr\n", 0},
		{[]string{"-k"}, "", 0},
		{[]string{"-v"}, "", 0},
		{[]string{"./bare", "x"}, "bare x\n", 0},
		{[]string{"no-such-command"}, "sudo: no-such-command: command not found\n", 1},
		{[]string{"-u", "eve", "id"}, "sudo: unknown user eve\n", 1},
		{[]string{"-D", "/none", "id"}, "sudo: unable to change directory to /none: No such file or directory\n", 1},
		{[]string{"-l", "sh"}, "/usr/bin/sh\n", 0},
	} {
		out, code := run(c.args...)
		require.Equal(t, c.want, out, c.args)
		require.Equal(t, c.code, code, c.args)
	}
	require.NoError(t, os.Chmod(file, 0o755))
	out2, code := run("id")
	require.Equal(t, 1, code)
	require.Contains(t, out2, "must be owned by uid 0 and have the setuid bit set")
}
