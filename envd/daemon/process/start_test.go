package process_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	wire "github.com/isthmus/isthmus/envd/process"
)

func TestStartOverEveryTransport(t *testing.T) {
	h := start(t, nil)
	for _, c := range []struct {
		name     string
		h2, json bool
	}{{"h1 json", false, true}, {"h1 proto", false, false}, {"h2c json", true, true}, {"h2c proto", true, false}} {
		t.Run(c.name, func(t *testing.T) {
			e := begin(t, h.client(t, c.h2, c.json), shell(`echo out; echo err >&2; exit 3`)).finish(t)
			require.Equal(t, "out\n", e.stdout)
			require.Equal(t, "err\n", e.stderr)
			require.True(t, proto.Equal(&wire.ProcessEvent_EndEvent{
				ExitCode: 3, Exited: true, Status: "exit status 3", Error: proto.String("exit status 3"),
			}, e.end), "%v", e.end)
		})
	}
}

func TestEndSaysHow(t *testing.T) {
	h := start(t, nil)
	failed := func(code int32, exited bool, text string) *wire.ProcessEvent_EndEvent {
		return &wire.ProcessEvent_EndEvent{ExitCode: code, Exited: exited, Status: text, Error: &text}
	}
	for script, want := range map[string]*wire.ProcessEvent_EndEvent{
		"true":          {Exited: true, Status: "exit status 0"},
		"exit 255":      failed(255, true, "exit status 255"),
		"kill -9 $$":    failed(-1, false, "signal: killed"),
		"kill -TERM $$": failed(-1, false, "signal: terminated"),
		"kill -HUP $$":  failed(-1, false, "signal: hangup"),
	} {
		t.Run(script, func(t *testing.T) {
			e := begin(t, h.sdk(t), shell(script)).finish(t)
			require.True(t, proto.Equal(want, e.end), "%v", e.end)
		})
	}
	e := begin(t, h.sdk(t), shell("ulimit -c 0; kill -SEGV $$")).finish(t)
	require.Contains(t, e.end.GetError(), "signal: segmentation fault")
	require.EqualValues(t, -1, e.end.GetExitCode())
}

func TestAProgramThatCannotRunExits(t *testing.T) {
	h := start(t, nil)
	dir := h.home
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for _, c := range []struct {
		name, cmd string
		code      int32
		reason    string
	}{
		{"not in PATH", "no-such-program", 127, "No such file or directory"},
		{"no such path", "/no/such/program", 127, "No such file or directory"},
		{"empty", "", 127, "No such file or directory"},
		{"interpreter missing", file("bad", "#!/no/such/interpreter\n", 0o755), 127, "No such file or directory"},
		{"not executable", file("plain", "echo\n", 0o644), 126, "Permission denied"},
		{"folder", "/tmp", 126, "Permission denied"},
		{"below a file", "/etc/passwd/x", 126, "Not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &wire.StartRequest{Process: &wire.ProcessConfig{Cmd: c.cmd}}
			e := begin(t, h.sdk(t), m).finish(t)
			require.Equal(t, "envd: '"+c.cmd+"': "+c.reason+"\n", e.stderr)
			require.Equal(t, c.code, e.end.GetExitCode())
			require.Equal(t, "exit status "+strconv.Itoa(int(c.code)), e.end.GetError())
			kept := attach(t, h.sdk(t), byPID(e.pid)).finish(t)
			require.True(t, proto.Equal(e.end, kept.end))
			pty := begin(t, h.sdk(t), withPTY(m, 80, 24)).finish(t)
			require.Equal(t, "envd: '"+c.cmd+"': "+c.reason+"\r\n", pty.pty)
		})
	}
	e := begin(t, h.sdk(t), &wire.StartRequest{}).finish(t)
	require.EqualValues(t, 127, e.end.GetExitCode(), "a start without a process is one with an empty command")
	script := file("script", "echo as a shell does it: $1", 0o755)
	e = begin(t, h.sdk(t), &wire.StartRequest{Process: &wire.ProcessConfig{Cmd: script, Args: []string{"yes"}}}).finish(t)
	require.Equal(t, "as a shell does it: yes\n", e.stdout)
}

func TestWorkingFolder(t *testing.T) {
	h := start(t, nil)
	closed := filepath.Join(h.home, "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(h.home, "a", "b"), 0o755))
	require.NoError(t, os.Mkdir(closed, 0o700))
	file := filepath.Join(h.home, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, c := range []struct{ name, user, cwd, pwd, fault string }{
		{name: "home", pwd: h.home},
		{name: "tilde", cwd: "~", pwd: h.home},
		{name: "below home", cwd: "~/a/b", pwd: filepath.Join(h.home, "a/b")},
		{name: "relative", cwd: "a", pwd: filepath.Join(h.home, "a")},
		{name: "absolute", cwd: "/usr/bin/..", pwd: "/usr"},
		{name: "missing", cwd: "/no/such", fault: "cwd '/no/such' does not exist"},
		{name: "relative missing", cwd: "nope", fault: "cwd '" + h.home + "/nope' does not exist"},
		{name: "file", cwd: file, fault: "error starting process '/bin/sh -c pwd': fork/exec /bin/sh: not a directory"},
		{name: "other home", cwd: "~guest", fault: "cannot expand user-specific home dir"},
		{name: "not permitted", user: "guest", cwd: closed, fault: "error starting process '/bin/sh -c pwd': fork/exec /bin/sh: permission denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := shell("pwd")
			m.Process.Cwd = &c.cwd
			var headers []string
			if c.user != "" {
				headers = basic(c.user)
			}
			if c.fault == "" {
				e := begin(t, h.sdk(t), m, headers...).finish(t)
				require.Equal(t, c.pwd+"\n", e.stdout)
				return
			}
			err := refused(t, h.sdk(t), m, headers...)
			require.Equal(t, connect.CodeInvalidArgument, err.Code())
			require.Contains(t, err.Message(), c.fault)
		})
	}
	missing := "/etc/passwd"
	m := withPTY(shell("pwd"), 80, 24)
	m.Process.Cwd = &missing
	require.Equal(t, "error starting pty with command '/bin/sh -c pwd' in dir '/etc/passwd' with '80' cols and '24' rows: "+
		"fork/exec /bin/sh: not a directory", refused(t, h.sdk(t), m).Message())
	h.users.SetDefaults("", "/usr/bin")
	require.Equal(t, "/usr/bin\n", begin(t, h.sdk(t), shell("pwd")).finish(t).stdout, "the default folder replaces an empty cwd")
	m = shell("pwd")
	m.Process.Cwd = proto.String("a")
	require.Equal(t, filepath.Join(h.home, "a")+"\n", begin(t, h.sdk(t), m).finish(t).stdout, "never a relative one")
}

func basic(user string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))}
}

func TestEnvironment(t *testing.T) {
	h := start(t, map[string]string{"GLOBAL": "sandbox", "BOTH": "sandbox"})
	m := &wire.StartRequest{Process: &wire.ProcessConfig{
		Cmd: "env", Envs: map[string]string{"BOTH": "request", "MINE": "a=b c", "LOGNAME": "other"},
	}}
	e := begin(t, h.sdk(t), m).finish(t)
	got := strings.Split(strings.TrimSpace(e.stdout), "\n")
	sort.Strings(got)
	require.Equal(t, []string{
		"BOTH=request", "GLOBAL=sandbox", "HOME=" + h.home, "LOGNAME=other", "MINE=a=b c",
		"PATH=" + os.Getenv("PATH"), "USER=root",
	}, got)
	m.Process.Envs = map[string]string{"PATH": "/no/such"}
	require.EqualValues(t, 127, begin(t, h.sdk(t), m).finish(t).end.GetExitCode(), "the program is sought in its own PATH")
}

func TestUser(t *testing.T) {
	h := start(t, nil)
	as := basic("guest")
	e := begin(t, h.sdk(t), shell("id -u; id -g; id -G; pwd; echo $USER"), as...).finish(t)
	require.Equal(t, "12345\n12346\n12346 12347\n/\nguest\n", e.stdout)

	e = begin(t, h.sdk(t), shell("echo out > /dev/stdout; echo err > /dev/stderr"), as...).finish(t)
	require.Equal(t, "out\n", e.stdout, "the streams belong to the user")
	require.Equal(t, "err\n", e.stderr)

	err := refused(t, h.sdk(t), shell("true"), basic("nobody-here")...)
	require.Equal(t, connect.CodeUnauthenticated, err.Code())
	require.Equal(t, "invalid username: 'nobody-here'", err.Message())
	h.users.SetDefaults("gone", "")
	err = refused(t, h.sdk(t), shell("true"))
	require.Equal(t, connect.CodeUnauthenticated, err.Code())
	require.Equal(t, "invalid default user: 'gone'", err.Message())
}

func TestAProcessInheritsNothing(t *testing.T) {
	leak, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer leak.Close()
	h := start(t, nil)
	for name, m := range map[string]*wire.StartRequest{"pipes": shell(""), "pty": withPTY(shell(""), 80, 24)} {
		t.Run(name, func(t *testing.T) {
			// The listing itself holds one more, for the folder. The score is set right after the start.
			m.Process.Args[1] = "ls /proc/self/fd | tr '\\n' ' '; until grep -x 100 /proc/self/oom_score_adj; do sleep 0.01; done"
			e := begin(t, h.sdk(t), m).finish(t)
			require.Equal(t, "0 1 2 3 100", strings.TrimSpace(e.stdout+e.pty))
		})
	}
}

func TestGroupAndSession(t *testing.T) {
	h := start(t, nil)
	e := begin(t, h.sdk(t), shell("cut -d' ' -f5,6 /proc/self/stat")).finish(t)
	own, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(own[strings.LastIndexByte(string(own), ')'):]))
	require.Equal(t, fields[3]+" "+fields[4]+"\n", e.stdout, "a command stays in the daemon's group and session")
}

func TestOutputComesInBoundedMessages(t *testing.T) {
	h := start(t, nil)
	e := begin(t, h.client(t, false, false), shell("head -c 3000000 /dev/zero")).finish(t)
	require.Len(t, e.stdout, 3000000)
	require.LessOrEqual(t, e.largest, 64<<10)
	e = begin(t, h.client(t, false, false), withPTY(shell("head -c 300000 /dev/zero"), 80, 24)).finish(t)
	require.Len(t, e.pty, 300000)
	require.LessOrEqual(t, e.largest, 16<<10)
}

func TestTheEndWaitsForBothPipes(t *testing.T) {
	h := start(t, nil)
	e := begin(t, h.sdk(t), shell("(sleep 0.3; echo late) & echo early")).finish(t)
	require.Equal(t, "early\nlate\n", e.stdout)
	e = begin(t, h.sdk(t), shell("exec >&- 2>&-; sleep 0.2; exit 4")).finish(t)
	require.EqualValues(t, 4, e.end.GetExitCode(), "closed output is not the end of the process")
}

func TestJournalNotesStartAndEnd(t *testing.T) {
	h := start(t, nil)
	begin(t, h.sdk(t), shell("echo secret-output; exit 2; : "+strings.Repeat("x", 1000))).finish(t)
	entries := h.journal.After(0)
	require.Len(t, entries, 2)
	require.Equal(t, "process started", entries[0].Message)
	require.Less(t, len(entries[0].Fields["cmd"]), 210)
	require.Equal(t, "process ended", entries[1].Message)
	require.Equal(t, "2", entries[1].Fields["exit_code"])
	require.Equal(t, entries[0].Fields["pid"], entries[1].Fields["pid"])
}
