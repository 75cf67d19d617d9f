package wire

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

func inputCases() []Case {
	return []Case{
		{"input/sent, and closed", inputSent},
		{"input/closed twice", inputClosedTwice},
		{"input/streamed", inputStreamed},
		{"input/to a command without input", inputRefused},
		{"input/to the wrong end", inputMisplaced},
	}
}

// basic is the credentials of a user without a password.
func basic(user string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":"))
}

// stdin is the JSON of an input, to be put behind a selector.
func stdin(text string) string {
	return `,"input":{"stdin":` + encode([]byte(text)) + `}`
}

func inputSent(t T, s *Suite) {
	c := shell("cat")
	c.stdin = true
	started := s.begin(t, c)
	defer started.close()
	pid, err := started.pid()
	must(t, err, "starting")
	for number := range 5 {
		got := s.expect(t, 200, s.rpc("process.Process/SendInput", selector(pid, stdin(fmt.Sprintf("line %d\n", number)))))
		equal(t, "{}", string(got.body), "answer of SendInput")
	}
	s.expect(t, 200, s.rpc("process.Process/CloseStdin", selector(pid, "")))
	got, err := started.rest()
	must(t, err, "reading")
	equal(t, "line 0\nline 1\nline 2\nline 3\nline 4\n", got.stdout, "what cat repeats")
}

func inputClosedTwice(t T, s *Suite) {
	started := s.begin(t, command{cmd: "/bin/sleep", args: []string{"60"}, stdin: true})
	defer started.close()
	pid, err := started.pid()
	must(t, err, "starting")
	for range 2 {
		s.expect(t, 200, s.rpc("process.Process/CloseStdin", selector(pid, "")))
	}
	s.expect(t, 200, s.rpc("process.Process/SendSignal", selector(pid, `,"signal":"SIGNAL_SIGTERM"`)))
	got, err := started.rest()
	must(t, err, "reading")
	equal(t, "signal: terminated", got.exit.Status, "status")
}

func inputStreamed(t T, s *Suite) {
	c := shell("head -n 2")
	c.stdin = true
	started := s.begin(t, c)
	defer started.close()
	pid, err := started.pid()
	must(t, err, "starting")
	body := envelope(flagData, `{"start":`+selector(pid, "")+`}`) +
		envelope(flagData, `{"data":{"input":{"stdin":`+encode([]byte("one\n"))+`}}}`) +
		envelope(flagData, `{"keepalive":{}}`) +
		envelope(flagData, `{"data":{"input":{"stdin":`+encode([]byte("two\n"))+`}}}`)
	got := s.expect(t, 200, s.streamCall("process.Process/StreamInput", body))
	from := strings.NewReader(string(got.body))
	for _, want := range []byte{flagData, flagEnd} {
		f, err := readFrame(from)
		must(t, err, "reading the answer")
		equal(t, fmt.Sprintf("%d {}", want), fmt.Sprintf("%d %s", f.flags, f.message), "a frame of the answer")
	}
	read, err := started.rest()
	must(t, err, "reading")
	equal(t, "one\ntwo\n", read.stdout, "what the command read")
}

// streamCall is a stream request whose body is given as it is.
func (s *Suite) streamCall(method, body string) call {
	c := s.envd("POST", "/"+method, body)
	c.header.Set("Content-Type", "application/connect+json")
	c.header.Set("Connect-Protocol-Version", "1")
	return c
}

func inputRefused(t T, s *Suite) {
	got := s.expect(t, 500, s.rpc("process.Process/SendInput", selector(s.sleeper, stdin("x"))))
	refused := decode[connectError](t, got.body)
	equal(t, "internal", refused.Code, "code")
	that(t, strings.Contains(refused.Message, "stdin not enabled or closed"), "message %q", refused.Message)
	s.expect(t, 200, s.rpc("process.Process/CloseStdin", selector(s.sleeper, "")))
}

func inputMisplaced(t T, s *Suite) {
	got := s.expect(t, 500, s.rpc("process.Process/SendInput", selector(s.sleeper, `,"input":{"pty":"eA=="}`)))
	that(t, strings.Contains(decode[connectError](t, got.body).Message, "tty not assigned"), "a terminal's input to a command: %s", clip(got.body))
	got = s.expect(t, 500, s.rpc("process.Process/Update", selector(s.sleeper, `,"pty":{"size":{"cols":1,"rows":1}}`)))
	equal(t, "internal", decode[connectError](t, got.body).Code, "code of a resize of a command")
	got = s.expect(t, http.StatusNotImplemented, s.rpc("process.Process/SendInput", selector(s.sleeper, "")))
	equal(t, "unimplemented", decode[connectError](t, got.body).Code, "code of no input at all")
}
