package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

func processCases() []Case {
	return []Case{
		{"process/the messages of a command", commandMessages},
		{"process/exit codes and signals", exits},
		{"process/a missing program is exit 127", missingProgram},
		{"process/both streams", bothStreams},
		{"process/environment and user", environment},
		{"process/working directory", workingDirectory},
		{"process/list", listProcesses},
		{"process/connect by pid and by tag", connectByPID},
		{"process/connect after the end", connectLate},
		{"process/every subscriber gets everything", subscribers},
		{"process/the deadline of a start kills", startDeadline},
		{"process/the deadline of a connect does not", connectDeadline},
		{"process/a command outlives its client", outlives},
		{"process/keepalives", keepalives},
		{"process/terminal", terminal},
	}
}

func commandMessages(t T, s *Suite) {
	opened, err := s.open(t.Context(), "process.Process/Start", shell("echo hi").message(), nil)
	must(t, err, "starting")
	defer opened.close()
	var kinds []string
	for {
		got, err := readFrame(opened.body)
		must(t, err, "reading the stream")
		if got.flags == flagEnd {
			equal(t, "{}", string(got.message), "the end frame of a stream that went well")
			break
		}
		message := decode[map[string]map[string]json.RawMessage](t, got.message)
		for kind, content := range message["event"] {
			kinds = append(kinds, kind)
			if kind == "end" {
				equal(t, `{"exited":true,"status":"exit status 0"}`, encode(decode[map[string]any](t, content)), "the end event leaves out what is zero")
			}
		}
	}
	equal(t, []string{"start", "data", "end"}, kinds, "the events")
	_, err = opened.body.Read(make([]byte, 1))
	that(t, errors.Is(err, io.EOF), "after the end frame comes %v", err)
}

func exits(t T, s *Suite) {
	for _, want := range []struct {
		line          string
		code          int
		exited        bool
		status, error string
	}{
		{"exit 0", 0, true, "exit status 0", ""},
		{"exit 3", 3, true, "exit status 3", "exit status 3"},
		{"exit 255", 255, true, "exit status 255", "exit status 255"},
		{"kill -KILL $$", -1, false, "signal: killed", "signal: killed"},
		{"kill -TERM $$", -1, false, "signal: terminated", "signal: terminated"},
	} {
		got := s.run(t, shell(want.line)).exit
		equal(t, want.code, got.ExitCode, want.line+": exit code")
		equal(t, want.exited, got.Exited, want.line+": exited")
		equal(t, want.status, got.Status, want.line+": status")
		failure := ""
		if got.Error != nil {
			failure = *got.Error
		}
		equal(t, want.error, failure, want.line+": error")
	}
}

func missingProgram(t T, s *Suite) {
	for _, cmd := range []string{"/no/such/program", "no-such-program", ""} {
		got := s.run(t, command{cmd: cmd})
		equal(t, 127, got.exit.ExitCode, fmt.Sprintf("exit code of %q", cmd))
		that(t, got.stderr != "", "%q leaves no word on stderr", cmd)
	}
	equal(t, 126, s.run(t, command{cmd: "/etc/passwd"}).exit.ExitCode, "exit code of a file that is no program")
}

func bothStreams(t T, s *Suite) {
	got := s.run(t, shell(`printf 'out\377'; printf err >&2`))
	equal(t, "out\xff", got.stdout, "stdout, byte for byte")
	equal(t, "err", got.stderr, "stderr")
	large := s.run(t, shell("head -c 3000000 /dev/zero | tr '\\0' x"))
	equal(t, 3000000, len(large.stdout), "length of a large output")
}

func environment(t T, s *Suite) {
	line := shell(`echo "$A|$HOME|$USER|$LOGNAME|$E2B_SANDBOX|$E2B_SANDBOX_ID|$(whoami)"`)
	line.envs = map[string]string{"A": "x=1 'y'"}
	equal(t, "x=1 'y'|/home/user|user|user|true|"+s.subject.SandboxID+"|user\n", s.run(t, line).stdout, "as the default user")
	line.header = http.Header{"Authorization": {"Basic " + basic("root")}}
	equal(t, "x=1 'y'|/root|root|root|true|"+s.subject.SandboxID+"|root\n", s.run(t, line).stdout, "as root")
	equal(t, "", s.run(t, shell(`env | grep ^A=; true`)).stdout, "what is left of it in the next command")
}

func workingDirectory(t T, s *Suite) {
	for cwd, want := range map[string]string{"": "/home/user", "/usr": "/usr", "canary": "/home/user/canary", "~": "/home/user"} {
		c := shell("pwd")
		c.cwd = cwd
		equal(t, want+"\n", s.run(t, c).stdout, fmt.Sprintf("pwd with cwd %q", cwd))
	}
}

func listProcesses(t T, s *Suite) {
	for _, running := range s.processes(t) {
		if running.PID == s.sleeper {
			equal(t, "/bin/sleep", running.Config.Cmd, "cmd")
			equal(t, []string{"3600"}, running.Config.Args, "args")
			return
		}
	}
	t.Errorf("the suite's own command, pid %d, is not in the list", s.sleeper)
}

// selector is a request about one process.
func selector(pid int, more string) string {
	return fmt.Sprintf(`{"process":{"pid":%d}%s}`, pid, more)
}

// attach connects to a process, ending the case when that fails.
func (s *Suite) attach(t T, message string, header http.Header) *running {
	t.Helper()
	opened, err := s.open(t.Context(), "process.Process/Connect", message, header)
	must(t, err, "connecting to "+message)
	return &running{opened}
}

func connectByPID(t T, s *Suite) {
	request := strings.TrimSuffix(shell("read line; echo got $line; exit 4").message(), "}")
	request = strings.Replace(request, `"stdin":false`, `"stdin":true`, 1) + `,"tag":"wire-case"}`
	opened, err := s.open(t.Context(), "process.Process/Start", request, nil)
	must(t, err, "starting")
	pid, err := (&running{opened}).pid()
	must(t, err, "starting")
	opened.close()
	for _, message := range []string{selector(pid, ""), `{"process":{"tag":"wire-case"}}`} {
		again := s.attach(t, message, nil)
		defer again.close()
		found, err := again.pid()
		must(t, err, "connecting")
		equal(t, pid, found, "pid")
		if message == selector(pid, "") {
			continue
		}
		s.expect(t, 200, s.rpc("process.Process/SendInput", selector(pid, `,"input":{"stdin":"aGVsbG8K"}`)))
		got, err := again.rest()
		must(t, err, "reading on")
		equal(t, "got hello\n", got.stdout, "stdout")
		equal(t, 4, got.exit.ExitCode, "exit code")
	}
}

func connectLate(t T, s *Suite) {
	started := s.begin(t, shell("echo gone; exit 6"))
	pid, err := started.pid()
	must(t, err, "starting")
	_, err = started.rest()
	must(t, err, "running")
	started.close()
	late := s.attach(t, selector(pid, ""), nil)
	defer late.close()
	_, err = late.pid()
	must(t, err, "connecting after the end")
	got, err := late.rest()
	must(t, err, "connecting after the end")
	equal(t, 6, got.exit.ExitCode, "exit code")
	equal(t, "", got.stdout, "output is not repeated")
}

func subscribers(t T, s *Suite) {
	c := shell("read go; for i in 1 2 3; do echo $i; done")
	c.stdin = true
	first := s.begin(t, c)
	defer first.close()
	pid, err := first.pid()
	must(t, err, "starting")
	all := []*running{first}
	for range 2 {
		other := s.attach(t, selector(pid, ""), nil)
		defer other.close()
		_, err := other.pid()
		must(t, err, "connecting")
		all = append(all, other)
	}
	s.expect(t, 200, s.rpc("process.Process/SendInput", selector(pid, `,"input":{"stdin":"Cg=="}`)))
	for _, each := range all {
		got, err := each.rest()
		must(t, err, "reading")
		equal(t, "1\n2\n3\n", got.stdout, "stdout of each")
	}
}

func startDeadline(t T, s *Suite) {
	c := shell("exec sleep 300")
	c.header = http.Header{"Connect-Timeout-Ms": {"700"}}
	started := s.begin(t, c)
	defer started.close()
	pid, err := started.pid()
	must(t, err, "starting")
	_, err = started.rest()
	equal(t, "deadline_exceeded", codeOf(err), "code of the end frame")
	within(t, 10*time.Second, "the process is gone", func() bool { return !s.alive(t, pid) })
}

func connectDeadline(t T, s *Suite) {
	watched := s.attach(t, selector(s.sleeper, ""), http.Header{"Connect-Timeout-Ms": {"300"}})
	defer watched.close()
	_, err := watched.pid()
	must(t, err, "connecting")
	_, err = watched.rest()
	equal(t, "deadline_exceeded", codeOf(err), "code of the end frame")
	that(t, s.alive(t, s.sleeper), "the process died with the stream")
}

// alive says whether a process is in the list.
func (s *Suite) alive(t T, pid int) bool {
	t.Helper()
	for _, running := range s.processes(t) {
		if running.PID == pid {
			return true
		}
	}
	return false
}

func outlives(t T, s *Suite) {
	started := s.begin(t, shell("exec sleep 300"))
	pid, err := started.pid()
	must(t, err, "starting")
	started.close()
	for range 5 {
		that(t, s.alive(t, pid), "the command died with its client")
	}
	s.expect(t, 200, s.rpc("process.Process/SendSignal", selector(pid, `,"signal":"SIGNAL_SIGKILL"`)))
	within(t, 10*time.Second, "the process is gone", func() bool { return !s.alive(t, pid) })
	got := s.expect(t, 404, s.rpc("process.Process/SendSignal", selector(pid, `,"signal":"SIGNAL_SIGKILL"`)))
	equal(t, "not_found", decode[connectError](t, got.body).Code, "code of a second kill")
}

func keepalives(t T, s *Suite) {
	c := shell("exec sleep 300")
	c.header = http.Header{"Keepalive-Ping-Interval": {"1"}, "Connect-Timeout-Ms": {"10000"}}
	opened, err := s.open(t.Context(), "process.Process/Start", c.message(), c.header)
	must(t, err, "starting")
	defer opened.close()
	started := &running{opened}
	pid, err := started.pid()
	must(t, err, "starting")
	defer s.do(t, s.rpc("process.Process/SendSignal", selector(pid, `,"signal":"SIGNAL_SIGKILL"`)))
	got, err := readFrame(opened.body)
	must(t, err, "waiting for a keepalive")
	equal(t, `{"event":{"keepalive":{}}}`, encode(decode[map[string]any](t, got.message)), "the message of an idle stream")
}

func terminal(t T, s *Suite) {
	started := s.begin(t, command{cmd: "/bin/bash", args: []string{"--norc"}, pty: true, envs: map[string]string{"PS1": ""}})
	defer started.close()
	pid, err := started.pid()
	must(t, err, "starting")
	type_ := func(text string) {
		s.expect(t, 200, s.rpc("process.Process/SendInput", selector(pid, `,"input":{"pty":`+encode([]byte(text))+`}`)))
	}
	s.expect(t, 200, s.rpc("process.Process/Update", selector(pid, `,"pty":{"size":{"cols":123,"rows":45}}`)))
	type_("stty size; exit 5\n")
	got, err := started.rest()
	must(t, err, "reading")
	that(t, strings.Contains(got.pty, "45 123\r\n"), "output of stty size: %q", got.pty)
	equal(t, "", got.stdout+got.stderr, "output outside the terminal")
	equal(t, 5, got.exit.ExitCode, "exit code")
}
