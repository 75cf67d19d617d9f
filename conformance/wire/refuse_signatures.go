package wire

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// refusedSignatures is file URLs that open nothing.
func refusedSignatures(s *Suite) []refusal {
	const file = "/home/user/canary/file"
	token := s.subject.EnvdAccessToken
	now := time.Now().Unix()
	var rows []refusal
	add := func(name, query, message string) {
		rows = append(rows, refusal{name: name, call: s.withoutToken("GET", "/files?"+query, ""), status: status(401), message: message})
	}
	// with replaces one value in a query that is good.
	with := func(query, name, value string) string {
		values, _ := url.ParseQuery(query)
		values.Set(name, value)
		return values.Encode()
	}
	good := signed(token, file, "read", "", 0)
	lasting := signed(token, file, "read", "", now+600)
	signature := sign(token, file, "read", "", 0)

	add("no signature", "path="+file, "^missing signature query parameter$")
	add("an empty signature", "path="+file+"&signature=", "signature")
	add("a signature of nothing", with(good, "signature", "v1_AAAA"), "^invalid signature$")
	add("a signature without its version", with(good, "signature", strings.TrimPrefix(signature, "v1_")), "^invalid signature$")
	add("a padded signature", with(good, "signature", signature+"="), "^invalid signature$")
	add("a signature of another path", with(good, "path", "/etc/passwd"), "^invalid signature$")
	add("a signature of the same path written otherwise", with(good, "path", "/home/user/canary/../canary/file"), "^invalid signature$")
	add("a signature of another user", with(good, "username", "root"), "^invalid signature$")
	add("a signature for writing", signed(token, file, "write", "", 0), "^invalid signature$")
	add("a signature by another sandbox's token", signed(s.neighbour.EnvdAccessToken, file, "read", "", 0), "^invalid signature$")
	add("an expired signature", signed(token, file, "read", "", now-1), "^signature is already expired$")
	add("an end that was moved", with(lasting, "signature_expiration", "99999999999"), "^invalid signature$")
	add("an end that was taken away", "path="+url.QueryEscape(file)+"&signature="+url.QueryEscape(sign(token, file, "read", "", now+600)), "^invalid signature$")
	add("an end that was added", good+"&signature_expiration=99999999999", "^invalid signature$")

	wrong := s.envd("GET", "/files?"+good, "")
	wrong.header.Set("X-Access-Token", "wrong")
	write := s.withoutToken("POST", "/files?"+good, "overwritten")
	write.header.Set("Content-Type", "application/octet-stream")
	late := s.withoutToken("POST", "/files?"+signed(token, file, "write", "", now-1), "overwritten")
	late.header.Set("Content-Type", "application/octet-stream")
	rpc := s.rpc("filesystem.Filesystem/Remove?"+good, `{"path":"`+file+`"}`)
	rpc.header.Del("X-Access-Token")
	unknown := call{method: "GET", path: "/files?" + signed("no-such-token", file, "read", "", 0), toSandbox: true}
	expired := call{method: "GET", path: "/files?" + signed(token, file, "read", "", now-1), toSandbox: true}
	neighbour := call{method: "GET", path: "/files?" + signed(token, file, "read", "", 0), header: http.Header{
		"E2b-Sandbox-Id": {s.neighbour.SandboxID}, "E2b-Sandbox-Port": {"49983"},
	}, toSandbox: true}
	return append(rows,
		refusal{name: "a wrong token beside a good signature", call: wrong, status: status(401), message: "access token present in header but does not match"},
		refusal{name: "writing with a signature for reading", call: write, status: status(401), message: "^invalid signature$"},
		refusal{name: "writing after the end", call: late, status: status(401), message: "^signature is already expired$"},
		refusal{name: "a signature on another route", call: rpc, status: status(401)},
		refusal{name: "an unknown signature without a sandbox id", call: unknown, status: status(401)},
		refusal{name: "an expired signature without a sandbox id", call: expired, status: status(401), message: "^signature is already expired$"},
		refusal{name: "a good signature at another sandbox", call: neighbour, status: status(401), message: "^invalid signature$"},
	)
}
