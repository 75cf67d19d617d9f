package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// badCall is a call that must be refused and change nothing.
type badCall struct {
	name   string
	method string // POST when there is a body, else GET
	path   string
	body   string
	header map[string]string // on top of the key and the JSON content type; "" takes one away
	status int
	says   string // part of the message
	code   string // error_code
}

// TestBadInput sends what is wrong in every way, and looks at status, body and side effects.
func TestBadInput(t *testing.T) {
	const id = "i0000000000000000000a"
	plane := newPlane(t)
	for _, group := range []struct {
		name  string
		calls []badCall
	}{
		{"bodies", badBodies()}, {"fields", unsupportedFields()}, {"query", badQueries(id)},
		{"paths", badPaths()}, {"credentials", badCredentials(id)}, {"headers", badHeaders(id)},
	} {
		require.GreaterOrEqual(t, len(group.calls), 8, group.name)
		for _, call := range group.calls {
			t.Run(group.name+"/"+call.name, func(t *testing.T) {
				plane.fleet.reset()
				plane.fleet.add(teamOne, id, 0, nil)
				method := call.method
				if method == "" && call.body != "" {
					method = http.MethodPost
				}
				answer := plane.call(method, call.path, call.body, call.header)
				failure := answer.failure(t)
				require.Equal(t, call.status, answer.Code, failure.Message)
				require.Contains(t, failure.Message, call.says)
				if call.code != "" {
					require.Equal(t, call.code, *failure.ErrorCode)
				}
				require.Empty(t, plane.fleet.changes, "a refused call reached the fleet")
			})
		}
	}
}

func badBodies() []badCall {
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	rows := []badCall{
		{name: "none", method: "POST", body: "", says: "the body is required"},
		{name: "blank", body: " \n", says: "the body is required"},
		{name: "not JSON", body: "templateID=base", says: "is not valid JSON"},
		{name: "cut off", body: `{"templateID":"base"`, says: "ends too early"},
		{name: "two values", body: `{"templateID":"base"} {}`, says: "something behind"},
		{name: "trailing bracket", body: `{"templateID":"base"}]`, says: "something behind"},
		{name: "NUL behind", body: "{\"templateID\":\"base\"}\x00", says: "something behind"},
		{name: "a list", body: `[]`, says: "must be a JSON object"},
		{name: "a text", body: `"base"`, says: "must be a JSON object"},
		{name: "null", body: `null`, says: "must be a JSON object"},
		{name: "not UTF-8", body: "{\"templateID\":\"\xff\"}", says: "not UTF-8"},
		{name: "too deep", body: deep, says: "is not valid JSON"},
		{name: "without template", body: `{}`, says: "templateID is required"},
		{name: "template null", body: `{"templateID":null}`, says: "templateID is required"},
		{name: "template empty", body: `{"templateID":""}`, says: "templateID must not be empty"},
		{name: "template a number", body: `{"templateID":7}`, says: "templateID must be a string"},
		{name: "template in another case", body: `{"TemplateID":"base"}`, says: "templateID is required"},
		{name: "template too long", body: `{"templateID":"` + strings.Repeat("a", 257) + `"}`, says: "at most 256"},
		{name: "template malformed", body: `{"templateID":"a/b/c"}`, says: "templateID must be an id or a name"},
		{name: "template with two tags", body: `{"templateID":"a:b:c"}`, says: "templateID must be an id or a name"},
		{name: "template a path", body: `{"templateID":"../base"}`, says: "templateID must be an id or a name"},
		{name: "timeout a text", body: `{"templateID":"base","timeout":"300"}`, says: "timeout must be a number"},
		{name: "timeout a fraction", body: `{"templateID":"base","timeout":1.5}`, says: "timeout must be a whole number"},
		{name: "timeout too big for int32", body: `{"templateID":"base","timeout":2147483648}`, says: "fits in 32 bits"},
		{name: "timeout enormous", body: `{"templateID":"base","timeout":1e400}`, says: "fits in 32 bits"},
		{name: "timeout negative", body: `{"templateID":"base","timeout":-1}`, says: "timeout must be at least 0"},
		{name: "timeout 0", body: `{"templateID":"base","timeout":0}`, says: "timeout must be at least 1"},
		{name: "timeout over a day", body: `{"templateID":"base","timeout":86401}`, says: "at most 86400"},
		{name: "metadata a list", body: `{"templateID":"base","metadata":[]}`, says: "metadata must be an object"},
		{name: "metadata with a number", body: `{"templateID":"base","metadata":{"a":1}}`, says: "metadata.a must be a string"},
		{name: "metadata with null", body: `{"templateID":"base","metadata":{"a":null}}`, says: "metadata.a must be a string"},
		{name: "envVars nested", body: `{"templateID":"base","envVars":{"A":{}}}`, says: "envVars.A must be a string"},
		{name: "envVars with =", body: `{"templateID":"base","envVars":{"A=B":"c"}}`, says: "envVars holds a name"},
		{name: "envVars without name", body: `{"templateID":"base","envVars":{"":"c"}}`, says: "envVars holds a name"},
		{name: "envVars with NUL", body: `{"templateID":"base","envVars":{"A":"b\u0000"}}`, says: "zero byte"},
		{name: "envVars too long for a program", body: `{"templateID":"base","envVars":{"A":"` + strings.Repeat("x", 131070) + `"}}`, says: "envVars: A and its value are longer than the 131071 bytes"},
		{name: "secure a text", body: `{"templateID":"base","secure":"yes"}`, says: "secure must be true or false"},
		{name: "network a text", body: `{"templateID":"base","network":"off"}`, says: "network must be an object"},
		{name: "denyOut a text", body: `{"templateID":"base","network":{"denyOut":"0.0.0.0/0"}}`, says: "network.denyOut must be a list"},
		{name: "denyOut of numbers", body: `{"templateID":"base","network":{"denyOut":[1]}}`, says: "network.denyOut[0] must be a string"},
		{name: "mask with a path", body: `{"templateID":"base","network":{"maskRequestHost":"a/b"}}`, says: "maskRequestHost must be a host"},
		{name: "mask with a bad port", body: `{"templateID":"base","network":{"maskRequestHost":"a:99999"}}`, says: "maskRequestHost must be a host"},
		{name: "mask with a line break", body: `{"templateID":"base","network":{"maskRequestHost":"a\r\nX: y"}}`, says: "maskRequestHost must be a host"},
		{name: "private traffic, open envd", body: `{"templateID":"base","network":{"allowPublicTraffic":false}}`, says: "needs a secure sandbox"},
		{name: "autoResume without enabled", body: `{"templateID":"base","autoResume":{}}`, says: "autoResume.enabled is required"},
		{name: "autoPauseMemory without autoPause", body: `{"templateID":"base","autoPauseMemory":false}`, says: "needs autoPause"},
		{name: "files only, but woken by traffic", body: `{"templateID":"base","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}}`, says: "contradict"},
		{name: "denyOut of a name", body: `{"templateID":"base","network":{"denyOut":["example.com"]}}`, says: "takes addresses and CIDRs"},
		{name: "allowOut of a name alone", body: `{"templateID":"base","network":{"allowOut":["example.com"]}}`, says: "add that"},
		{name: "allowOut of a URL", body: `{"templateID":"base","network":{"allowOut":["https://example.com"],"denyOut":["0.0.0.0/0"]}}`, says: "names, patterns"},
		{name: "allowOut of a wide pattern", body: `{"templateID":"base","network":{"allowOut":["*.*"],"denyOut":["0.0.0.0/0"]}}`, says: "names, patterns"},
		{name: "allowOut of any name alone", body: `{"templateID":"base","network":{"allowOut":["*"]}}`, says: "add that"},
		{name: "denyOut of any name", body: `{"templateID":"base","network":{"denyOut":["*"]}}`, says: "takes addresses and CIDRs"},
		{name: "rules of any host", body: `{"templateID":"base","network":{"rules":{"*":[{}]}}}`, says: "names of hosts"},
		{name: "rules with a line break", body: `{"templateID":"base","network":{"rules":{"a.b":[{"transform":{"headers":{"A":"b\r\nC: d"}}}]}}}`, says: "line break"},
		{name: "rules with two transforms", body: `{"templateID":"base","network":{"rules":{"a.b":[{},{}]}}}`, says: "one transform"},
		{name: "rules of a bad host", body: `{"templateID":"base","network":{"rules":{"a b":[{}]}}}`, says: "names of hosts"},
		{name: "pause with a text", path: "/sandboxes/i0000000000000000000a/pause", body: `{"memory":"no"}`, says: "memory must be true or false"},
		{name: "snapshot without a body", method: "POST", path: "/sandboxes/i0000000000000000000a/snapshots", says: "the body is required"},
		{name: "snapshot with a namespace", path: "/sandboxes/i0000000000000000000a/snapshots", body: `{"name":"a/b"}`, says: "namespace"},
		{name: "snapshot with a bad name", path: "/sandboxes/i0000000000000000000a/snapshots", body: `{"name":"a b"}`, says: "name must be"},
		{name: "snapshot with a tag that is an id", path: "/sandboxes/i0000000000000000000a/snapshots", body: `{"name":"a:0f0f0f0f-0000-4000-8000-000000000000"}`, says: "no UUID"},
		{name: "network without a body", method: "PUT", path: "/sandboxes/i0000000000000000000a/network", says: "the body is required"},
		{name: "network with name servers", method: "PUT", path: "/sandboxes/i0000000000000000000a/network", body: `{"dnsServers":["1.1.1.1"]}`, says: "dnsServers is not supported"},
		{name: "network with a bad address", method: "PUT", path: "/sandboxes/i0000000000000000000a/network", body: `{"denyOut":["1.2.3"]}`, says: "takes addresses and CIDRs"},
		{name: "mount without path", body: `{"templateID":"base","volumeMounts":[{"name":"v"}]}`, says: "volumeMounts[0].path is required"},
		{name: "connect without timeout", path: "/sandboxes/i0000000000000000000a/connect", body: `{}`, says: "timeout is required"},
		{name: "connect beyond a day", path: "/v2/sandboxes/i0000000000000000000a/connect", body: `{"timeout":90000}`, says: "at most 86400"},
		{name: "connect memory a text", path: "/v2/sandboxes/i0000000000000000000a/connect", body: `{"memory":"no"}`, says: "memory must be true or false"},
		{name: "timeout call negative", path: "/sandboxes/i0000000000000000000a/timeout", body: `{"timeout":-5}`, says: "timeout must be at least 0"},
		{name: "timeout call empty", method: "POST", path: "/sandboxes/i0000000000000000000a/timeout", says: "the body is required"},
		{name: "refresh beyond an hour", path: "/sandboxes/i0000000000000000000a/refreshes", body: `{"duration":3601}`, says: "duration must be at most 3600"},
	}
	for i := range rows {
		rows[i].status = http.StatusBadRequest
		if rows[i].path == "" {
			rows[i].path = "/sandboxes"
		}
	}
	return append(rows,
		badCall{name: "too large", path: "/sandboxes", body: strings.Repeat(" ", 16<<20+1), status: 413, says: "larger than 16 MiB"},
		badCall{name: "too large, chunked", path: "/sandboxes", body: strings.Repeat(" ", 16<<20+1), status: 413, says: "larger than 16 MiB",
			header: map[string]string{"Transfer-Encoding": "chunked"}},
	)
}

func unsupportedFields() []badCall {
	rows := []badCall{
		{name: "network.dnsServers", body: `"network":{"dnsServers":["1.1.1.1"]}`},
		{name: "network.httpsPorts", body: `"network":{"httpsPorts":[8443]}`},
		{name: "network.egressProxy", body: `"network":{"egressProxy":{"address":"proxy:1080"}}`, status: 403},
		{name: "network.rules of a.b with a placeholder", body: `"network":{"rules":{"a.b":[{"transform":{"headers":{"A":"${e2b.secrets.x}"}}}]}}`},
		{name: "volumeMounts", body: `"volumeMounts":[{"name":"v","path":"/v"}]`},
		{name: "iam.tokens", body: `"iam":{"tokens":{"a":{"audience":"b","tokenType":"JWT-SVID"}}}`},
	}
	both := make([]badCall, 0, 2*len(rows))
	for _, row := range rows {
		row.body = `{"templateID":"base",` + row.body + `}`
		row.code = "unsupported_field"
		row.says = row.name + " is not supported here: "
		if row.status == 0 {
			row.status = http.StatusBadRequest
		}
		for _, path := range []string{"/sandboxes", "/v2/sandboxes"} {
			row.path = path
			both = append(both, row)
		}
	}
	return both
}

func badQueries(id string) []badCall {
	rows := []badCall{
		{name: "state unknown", path: "/v2/sandboxes?state=asleep", says: "state must be one of running, paused"},
		{name: "state one of two unknown", path: "/v2/sandboxes?state=running,asleep", says: "state must be one of"},
		{name: "order unknown", path: "/v2/sandboxes?order=up", says: "order must be one of asc, desc"},
		{name: "order twice", path: "/v2/sandboxes?order=asc&order=desc", says: "order is given more than once"},
		{name: "limit 0", path: "/v2/sandboxes?limit=0", says: "limit must be at least 1"},
		{name: "limit 101", path: "/v2/sandboxes?limit=101", says: "limit must be at most 100"},
		{name: "limit empty", path: "/v2/sandboxes?limit=", says: "limit must be a whole number"},
		{name: "limit a word", path: "/v2/sandboxes?limit=many", says: "limit must be a whole number"},
		{name: "startedAfter a day", path: "/v2/sandboxes?startedAfter=2026-11-29", says: "startedAfter must be a time"},
		{name: "startedAfter with a bare plus", path: "/v2/sandboxes?startedAfter=2026-11-29T00:00:00+00:00", says: "%2B"},
		{name: "template with a tag", path: "/v2/sandboxes?template=base:v1", says: "without a tag"},
		{name: "template malformed", path: "/v2/sandboxes?template=a%20b", says: "without a tag"},
		{name: "token not base64", path: "/v2/sandboxes?nextToken=!!", says: "nextToken is not a token"},
		{name: "token of something else", path: "/v2/sandboxes?nextToken=aGVsbG8", says: "nextToken is not a token"},
		{name: "token of the other order", path: "/v2/sandboxes?order=asc&nextToken=MjAyNi0xMS0yOVQxMjowMDowMFpfX2kwMDAw", says: "nextToken is not a token"},
		{name: "metadata without =", path: "/v2/sandboxes?metadata=abc", says: "metadata must be pairs"},
		{name: "metadata broken inside", path: "/v2/sandboxes?metadata=a%3D%25zz", says: "broken percent-encoding"},
		{name: "metadata twice the same key", path: "/sandboxes?metadata=a%3D1%26a%3D2", says: "one key twice"},
		{name: "broken encoding", path: "/v2/sandboxes?limit=%zz", says: "query cannot be read"},
		{name: "a semicolon", path: "/v2/sandboxes?limit=1;order=asc", says: "query cannot be read"},
		{name: "metrics without ids", path: "/sandboxes/metrics", says: "sandbox_ids is required"},
		{name: "metrics with empty ids", path: "/sandboxes/metrics?sandbox_ids=", says: "sandbox_ids is required"},
		{name: "metrics of 101 ids", path: "/sandboxes/metrics?sandbox_ids=" + manyIDs(101), says: "at most 100"},
		{name: "metrics of a bad id", path: "/sandboxes/metrics?sandbox_ids=a,B", says: "a sandbox id is"},
		{name: "metrics start negative", path: "/sandboxes/" + id + "/metrics?start=-1", says: "start must be at least 0"},
		{name: "metrics start a time", path: "/sandboxes/" + id + "/metrics?start=2026-11-29T00:00:00Z", says: "start must be a whole number"},
		{name: "metrics start after end", path: "/sandboxes/" + id + "/metrics?start=20&end=10", says: "start must not be after end"},
		{name: "logs limit", path: "/sandboxes/" + id + "/logs?limit=1001", says: "limit must be at most 1000"},
		{name: "logs level", path: "/v2/sandboxes/" + id + "/logs?level=trace", says: "level must be one of debug"},
		{name: "logs direction", path: "/v2/sandboxes/" + id + "/logs?direction=up", says: "direction must be one of"},
		{name: "logs search too long", path: "/v2/sandboxes/" + id + "/logs?search=" + strings.Repeat("a", 257), says: "at most 256"},
	}
	for i := range rows {
		rows[i].status = http.StatusBadRequest
	}
	return rows
}

func badPaths() []badCall {
	return []badCall{
		{name: "no route", path: "/nothing/here", status: 404, says: "No operation has this path: /nothing/here"},
		{name: "root", path: "/", status: 404, says: "No operation has this path"},
		{name: "unknown version", path: "/v9/sandboxes", status: 404, says: "No operation has this path"},
		{name: "an empty id", path: "/sandboxes/", status: 404, says: "No operation has this path"},
		{name: "an empty id inside", path: "/sandboxes//logs", status: 404, says: "No operation has this path"},
		{name: "one segment too many", path: "/sandboxes/a/b", status: 404, says: "No operation has this path"},
		{name: "two segments too many", path: "/sandboxes/a/b/c/d", status: 404, says: "No operation has this path"},
		{name: "trailing slash", path: "/v2/sandboxes/", status: 404, says: "No operation has this path"},
		{name: "double slash", path: "//sandboxes", status: 404, says: "No operation has this path"},
		{name: "dots", path: "/v2/../sandboxes", status: 404, says: "No operation has this path"},
		{name: "wrong method", method: "PUT", path: "/sandboxes", status: 405, says: "not PUT"},
		{name: "TRACE", method: "TRACE", path: "/v2/sandboxes", status: 405, says: "not TRACE"},
		{name: "id in capitals", path: "/sandboxes/I0000", status: 400, says: "a sandbox id is"},
		{name: "id with two dashes", path: "/sandboxes/a-b-c", status: 400, says: "a sandbox id is"},
		{name: "id that begins with a dash", path: "/sandboxes/-a", status: 400, says: "a sandbox id is"},
		{name: "id with an encoded slash", path: "/sandboxes/a%2Fb", status: 400, says: "a sandbox id is"},
		{name: "id with encoded dots", path: "/sandboxes/%2E%2E", status: 400, says: "a sandbox id is"},
		{name: "id with NUL", path: "/sandboxes/a%00", status: 400, says: "a sandbox id is"},
		{name: "id with an umlaut", path: "/sandboxes/%C3%A4", status: 400, says: "a sandbox id is"},
		{name: "id too long", path: "/sandboxes/" + strings.Repeat("a", 64), status: 400, says: "a sandbox id is"},
		{name: "unknown id", path: "/sandboxes/i9", status: 404, says: "no sandbox i9"},
		{name: "unknown id with client", path: "/sandboxes/i9-6532622b", status: 404, says: "no sandbox i9"},
		{name: "template with %2F and %3A", path: "/templates/team%2Fname%3Atag", status: 404, says: "no template team/name:tag"},
		{name: "encoded twice", path: "/templates/team%252Fname/tags", status: 404, says: "no template team/name"},
	}
}

func badCredentials(id string) []badCall {
	other := map[string]string{"X-API-Key": keyTwo}
	rows := []badCall{
		{name: "none", header: map[string]string{"X-API-Key": ""}, says: "No API key"},
		{name: "unknown", header: map[string]string{"X-API-Key": "e2b_" + strings.Repeat("f", 40)}, says: "not known"},
		{name: "another form", header: map[string]string{"X-API-Key": "secret"}, says: "not known"},
		{name: "in capitals", header: map[string]string{"X-API-Key": strings.ToUpper(keyOne)}, says: "not known"},
		{name: "too short", header: map[string]string{"X-API-Key": keyOne[:20]}, says: "not known"},
		{name: "too long", header: map[string]string{"X-API-Key": keyOne + "0"}, says: "not known"},
		{name: "as a bearer token", header: map[string]string{"X-API-Key": "", "Authorization": "Bearer " + keyOne}, says: "No API key"},
		{name: "an admin token", header: map[string]string{"X-API-Key": "", "X-Admin-Token": "x"}, says: "No API key"},
		{name: "two keys", header: map[string]string{"X-API-Key": keyOne + "\n" + keyOne}, says: "More than one"},
		{name: "none for a path that is not served", path: "/templates", header: map[string]string{"X-API-Key": ""}, says: "No API key"},
		{name: "none for the teams", path: "/teams", header: map[string]string{"X-API-Key": ""}, says: "No API key"},
		{name: "basic for the teams", path: "/teams", header: map[string]string{"X-API-Key": "", "Authorization": "Basic eDp5"}, says: "No API key"},
		{name: "unknown bearer for the teams", path: "/teams", header: map[string]string{"X-API-Key": "", "Authorization": "Bearer sk_e2b_1"}, says: "not known"},
		{name: "none before a bad body", method: "POST", path: "/sandboxes", body: "{", header: map[string]string{"X-API-Key": ""}, says: "No API key"},
	}
	for i := range rows {
		rows[i].status = http.StatusUnauthorized
		if rows[i].path == "" {
			rows[i].path = "/sandboxes/" + id
		}
	}
	return append(rows,
		badCall{name: "another team's sandbox", path: "/sandboxes/" + id, header: other, status: 404, says: "no sandbox"},
		badCall{name: "another team's logs", path: "/v2/sandboxes/" + id + "/logs", header: other, status: 404, says: "no sandbox"},
		badCall{name: "another team's metrics", path: "/sandboxes/" + id + "/metrics", header: other, status: 404, says: "no sandbox"},
	)
}

func badHeaders(id string) []badCall {
	const body = `{"templateID":"base"}`
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	rows := []badCall{
		{name: "a form", body: body, header: form, status: 415, says: "must be JSON"},
		{name: "a form to connect", path: "/sandboxes/" + id + "/connect", body: `{"timeout":1}`, header: form, status: 415, says: "must be JSON"},
		{name: "text", body: body, header: map[string]string{"Content-Type": "text/plain"}, status: 415, says: "must be JSON"},
		{name: "XML", body: body, header: map[string]string{"Content-Type": "application/xml"}, status: 415, says: "must be JSON"},
		{name: "a broken type", body: body, header: map[string]string{"Content-Type": "json;;"}, status: 415, says: "must be JSON"},
		{name: "Latin-1", body: body, header: map[string]string{"Content-Type": "application/json; charset=iso-8859-1"}, status: 415, says: "must be JSON"},
		{name: "idempotency key in capitals", body: body, header: map[string]string{"Idempotency-Key": "ABC"}, status: 400, says: "header Idempotency-Key must match"},
		{name: "idempotency key too long", body: body, header: map[string]string{"Idempotency-Key": strings.Repeat("a", 256)}, status: 400, says: "at most 255"},
		{name: "idempotency key twice", body: body, header: map[string]string{"Idempotency-Key": "a\nb"}, status: 400, says: "more than once"},
		{name: "requirement v2", body: body, header: map[string]string{"X-Isthmus-Require": "isolatoin=microvm"}, status: 400, says: `"isolatoin" in the header X-Isthmus-Require is no requirement: "isolation" may be meant`, code: "invalid_requirement"},
		{name: "requirement v1", path: "/sandboxes", body: body, header: map[string]string{"X-Isthmus-Require": "region"}, status: 400, says: `"region" in the header X-Isthmus-Require is no pair`},
		{name: "requirement in metadata", body: `{"templateID":"base","metadata":{"isthmus:reigon":"eu"}}`, status: 400, says: `"reigon" in the metadata is no requirement: "region" may be meant`, code: "invalid_requirement"},
		{name: "two idempotency keys", body: `{"templateID":"base","metadata":{"isthmus:idempotency-key":"a"}}`, header: map[string]string{"Idempotency-Key": "b"}, status: 400, says: "contradict"},
		{name: "idempotency key empty", body: body, header: map[string]string{"Idempotency-Key": " "}, status: 400, says: "Idempotency-Key must"},
	}
	for i := range rows {
		if rows[i].path == "" {
			rows[i].path = "/v2/sandboxes"
		}
	}
	return rows
}

func manyIDs(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "i" + strings.Repeat("a", i)
	}
	return strings.Join(ids, ",")
}
