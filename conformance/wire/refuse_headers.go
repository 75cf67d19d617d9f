package wire

import (
	"net/http"
	"strings"
)

// refusedHeaders is credentials that open nothing, and headers that name nothing.
func refusedHeaders(s *Suite) []refusal {
	return append(refusedKeys(s), append(refusedTokens(s), refusedRoutes(s)...)...)
}

// refusedKeys is API keys.
func refusedKeys(s *Suite) []refusal {
	var rows []refusal
	add := func(name string, header http.Header) {
		rows = append(rows, refusal{name: name, call: call{method: "GET", path: "/v2/sandboxes", header: header}, status: status(401)})
	}
	add("no key", nil)
	for name, key := range ordered(
		"an empty key", "",
		"an unknown key", "e2b_"+strings.Repeat("0", 40),
		"a key of another form", "secret",
		"a key in upper case", strings.ToUpper(s.target.APIKey),
		"a key with something behind it", s.target.APIKey+"0",
		"half a key", s.target.APIKey[:len(s.target.APIKey)/2],
	) {
		add(name, http.Header{"X-Api-Key": {key}})
	}
	add("an access token instead of a key", http.Header{"Authorization": {"Bearer sk_e2b_" + strings.Repeat("0", 40)}})
	create := refusal{name: "create with an unknown key", call: s.post("/v2/sandboxes", `{"templateID":"base"}`), status: status(401)}
	create.call.header = http.Header{"X-Api-Key": {"e2b_" + strings.Repeat("f", 40)}}
	kill := refusal{name: "kill with an unknown key", status: status(401), call: call{
		method: "DELETE", path: "/sandboxes/" + s.subject.SandboxID, header: http.Header{"X-Api-Key": {"e2b_" + strings.Repeat("f", 40)}},
	}}
	return append(rows, create, kill)
}

// refusedTokens is access tokens of the subject's envd.
func refusedTokens(s *Suite) []refusal {
	const text = "unauthorized access"
	started := envelope(flagData, command{cmd: "/bin/touch", args: []string{"/home/user/intruder"}}.message())
	upload := s.envd("POST", "/files?path=/home/user/intruder", "x")
	upload.header.Set("Content-Type", "application/octet-stream")
	calls := []refusal{
		{name: "a unary call", call: s.rpc("process.Process/List", "{}"), message: text},
		{name: "a stream", call: s.streamCall("process.Process/Start", started), message: text},
		{name: "a download", call: s.envd("GET", "/files?path=/home/user/canary/file", "")},
		{name: "an upload", call: upload},
		{name: "the figures", call: s.envd("GET", "/metrics", ""), message: text},
		{name: "the environment", call: s.envd("GET", "/envs", ""), message: text},
		{name: "a removal", call: s.rpc("filesystem.Filesystem/Remove", `{"path":"/home/user"}`), message: text},
	}
	var rows []refusal
	for _, row := range calls {
		for kind, token := range ordered("no token", "", "a wrong token", "wrong", "another sandbox's token", s.neighbour.EnvdAccessToken) {
			row := row
			row.name += " with " + kind
			row.status = status(401)
			row.call.header = row.call.header.Clone()
			row.call.header.Del("X-Access-Token")
			if token != "" {
				row.call.header.Set("X-Access-Token", token)
			}
			rows = append(rows, row)
		}
	}
	stranger := s.rpc("process.Process/List", "{}")
	stranger.header.Set("Authorization", "Basic "+basic("nobody-there"))
	version := s.rpc("process.Process/List", "{}")
	version.header.Set("Connect-Protocol-Version", "2")
	timeout := s.rpc("process.Process/List", "{}")
	timeout.header.Set("Connect-Timeout-Ms", "soon")
	stream := s.streamCall("process.Process/Start", started)
	stream.header.Set("Authorization", "Basic "+basic("nobody-there"))
	return append(rows,
		refusal{name: "an unknown user", call: stranger, status: status(401), code: "unauthenticated", message: "invalid username: 'nobody-there'"},
		refusal{name: "a stream as an unknown user", call: stream, status: status(200), code: "unauthenticated", inStream: true},
		refusal{name: "another protocol version", call: version, status: status(400), code: "invalid_argument"},
		refusal{name: "a time-out that is no number", call: timeout, status: status(400), code: "invalid_argument"},
	)
}

// refusedRoutes is headers that name no sandbox, and paths that are not for clients.
func refusedRoutes(s *Suite) []refusal {
	var rows []refusal
	route := func(name string, header http.Header, codes ...int) {
		c := call{method: "GET", path: "/health", header: header, toSandbox: true}
		rows = append(rows, refusal{name: name, call: c, status: codes})
	}
	id := s.subject.SandboxID
	route("an id without a port", http.Header{"E2b-Sandbox-Id": {id}}, 400)
	route("a port without an id", http.Header{"E2b-Sandbox-Port": {"49983"}}, 400)
	for _, port := range []string{"0", "65536", "-1", "http", "49983x", "4294967295"} {
		route("port "+port, http.Header{"E2b-Sandbox-Id": {id}, "E2b-Sandbox-Port": {port}}, 400)
	}
	for _, bad := range []string{"UPPER", "a.b", "../x", "a_b"} {
		route("id "+bad, http.Header{"E2b-Sandbox-Id": {bad}, "E2b-Sandbox-Port": {"49983"}}, 400)
	}
	route("two ids", http.Header{"E2b-Sandbox-Id": {id, s.neighbour.SandboxID}, "E2b-Sandbox-Port": {"49983"}}, 400)
	route("an id that does not exist", http.Header{"E2b-Sandbox-Id": {"iunknown0000000000000"}, "E2b-Sandbox-Port": {"49983"}}, 502)
	for _, path := range []string{"/init", "//init", "/x/../init", "/./init", "/%69nit", "/init/", "/freeze", "/upgrade", "/isthmus/deadline", "/isthmus/tunnel/22", "/x/%2e%2e/isthmus/journal"} {
		c := s.envd("POST", path, "{}")
		c.header.Set("Isthmus-Control", "forged")
		c.header.Set("Isthmus-Transport", "forged")
		rows = append(rows, refusal{name: "internal path " + path, call: c, status: status(404)})
	}
	return rows
}
