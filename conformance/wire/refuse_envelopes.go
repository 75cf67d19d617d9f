package wire

import "strings"

// refusedEnvelopes is Connect messages that are broken, of the wrong kind, or about nothing.
func refusedEnvelopes(s *Suite) []refusal {
	return append(refusedFrames(s), refusedMessages(s)...)
}

// refusedFrames is streams whose framing is broken. None of them may start the command.
func refusedFrames(s *Suite) []refusal {
	message := command{cmd: "/bin/touch", args: []string{"/home/user/intruder"}}.message()
	const broken = "invalid_argument|internal|unimplemented|unknown"
	var rows []refusal
	add := func(name, body, code string) {
		rows = append(rows, refusal{name: name, call: s.streamCall("process.Process/Start", body), status: status(200), code: code, inStream: true})
	}
	whole := envelope(flagData, message)
	add("no message", "", broken)
	add("half a head", whole[:3], broken)
	add("a head without a message", whole[:5], broken)
	add("half a message", whole[:len(whole)/2], broken)
	add("a length that is too large", "\x00\xff\xff\xff\xff"+message, broken+"|resource_exhausted")
	add("a message that says it is compressed", envelope(1, message), broken)
	add("a message with unknown flags", envelope(0x80, message), broken)
	add("the end before the message", envelope(flagEnd, "{}"), broken)
	add("two messages", whole+whole, broken)
	add("no frame at all", message, broken+"|resource_exhausted")
	add("a message that is no JSON", envelope(flagData, "cmd=touch"), "invalid_argument")
	add("a list for a message", envelope(flagData, "["+message+"]"), "invalid_argument")
	add("a number for the process", envelope(flagData, `{"process":1}`), "invalid_argument")
	add("a text for the arguments", envelope(flagData, `{"process":{"cmd":"/bin/touch","args":"/home/user/intruder"}}`), "invalid_argument")
	add("a folder that does not exist", envelope(flagData, command{cmd: "/bin/touch", args: []string{"/home/user/intruder"}, cwd: "/no/such/folder"}.message()), "invalid_argument")

	pid := selector(s.sleeper, "")
	input := func(name, body, code string) {
		rows = append(rows, refusal{name: name, call: s.streamCall("process.Process/StreamInput", body), status: status(200), code: code, inStream: true})
	}
	input("input before its start", envelope(flagData, `{"data":{"input":{"stdin":"eA=="}}}`), "invalid_argument|failed_precondition|internal|unimplemented")
	input("input for a process that is not there", envelope(flagData, `{"start":{"process":{"pid":999999}}}`), "not_found")
	input("input for a command without any", envelope(flagData, `{"start":`+pid+`}`)+envelope(flagData, `{"data":{"input":{"stdin":"eA=="}}}`), "internal")
	attach := func(name, body, code string) {
		rows = append(rows, refusal{name: name, call: s.streamCall("process.Process/Connect", envelope(flagData, body)), status: status(200), code: code, inStream: true})
	}
	attach("a process that is not there", `{"process":{"pid":999999}}`, "not_found")
	attach("a tag that is not there", `{"process":{"tag":"no-such-tag"}}`, "not_found")
	attach("no selector", `{"process":{}}`, "unimplemented")

	compressed := s.streamCall("process.Process/Start", whole)
	compressed.header.Set("Connect-Content-Encoding", "br")
	late := s.streamCall("process.Process/Start", whole)
	late.header.Set("Connect-Timeout-Ms", "0")
	return append(rows,
		refusal{name: "a compression that nobody knows", call: compressed, status: status(200), code: "unimplemented", inStream: true},
		refusal{name: "a time that is over", call: late, status: status(200), code: "deadline_exceeded", inStream: true},
	)
}

// refusedMessages is unary calls, and calls of the wrong kind.
func refusedMessages(s *Suite) []refusal {
	var rows []refusal
	unary := func(name, method, message, code string, codes ...int) {
		rows = append(rows, refusal{name: name, call: s.rpc(method, message), status: codes, code: code})
	}
	unary("a unary message that is no JSON", "process.Process/List", "list", "invalid_argument", 400)
	unary("half a unary message", "filesystem.Filesystem/Remove", `{"path":"/home/user"`, "invalid_argument", 400)
	unary("a number for the path", "filesystem.Filesystem/Remove", `{"path":1}`, "invalid_argument", 400)
	unary("a pid that is no number", "process.Process/SendSignal", `{"process":{"pid":"x"},"signal":"SIGNAL_SIGKILL"}`, "invalid_argument", 400)
	unary("a signal of nobody", "process.Process/SendSignal", `{"process":{},"signal":"SIGNAL_SIGKILL"}`, "unimplemented", 501)
	unary("a signal that is none", "process.Process/SendSignal", selector(s.sleeper, `,"signal":"SIGNAL_UNSPECIFIED"`), "unimplemented", 501)
	unary("a signal that is not served", "process.Process/SendSignal", selector(s.sleeper, `,"signal":2`), "unimplemented", 501)
	unary("a signal to a process that is not there", "process.Process/SendSignal", selector(999999, `,"signal":"SIGNAL_SIGKILL"`), "not_found", 404)
	unary("input for nobody", "process.Process/SendInput", selector(999999, stdin("x")), "not_found", 404)
	unary("base64 that is none", "process.Process/SendInput", selector(s.sleeper, `,"input":{"stdin":"%%%"}`), "invalid_argument", 400)

	wordless := func(name string, c call, code int) {
		rows = append(rows, refusal{name: name, call: c, status: status(code), wordless: true})
	}
	asUnary := s.rpc("process.Process/Start", command{cmd: "/bin/touch", args: []string{"/home/user/intruder"}}.message())
	wordless("a stream called as a unary method", asUnary, 415)
	wordless("a unary method called as a stream", s.streamCall("process.Process/List", envelope(flagData, "{}")), 415)
	text := s.rpc("process.Process/List", "{}")
	text.header.Set("Content-Type", "text/plain")
	wordless("a type that nobody knows", text, 415)
	wordless("a method that is not there", s.rpc("process.Process/NoSuchMethod", "{}"), 404)
	wordless("a service that is not there", s.rpc("no.Such/Method", "{}"), 404)
	get := s.rpc("process.Process/List", "")
	get.method = "GET"
	wordless("a GET of a method", get, 405)
	packedCall := s.rpc("process.Process/List", "{}")
	packedCall.header.Set("Content-Encoding", "br")
	rows = append(rows, refusal{name: "a unary compression that nobody knows", call: packedCall, status: status(501), code: "unimplemented"})
	broken := s.rpc("process.Process/List", strings.Repeat("\x00", 20))
	broken.header.Set("Content-Encoding", "gzip")
	return append(rows, refusal{name: "a unary message that does not unpack", call: broken, status: status(400, 500), code: "invalid_argument|internal|unknown"})
}
