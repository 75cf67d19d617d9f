package wire

import "strings"

// refusedPaths is paths that lead nowhere, or to nothing that is there.
func refusedPaths(s *Suite) []refusal {
	var rows []refusal
	add := func(method, path, body string, codes ...int) {
		row := refusal{name: method + " " + path, call: call{method: method, path: path, header: s.key(), body: body}, status: codes}
		row.name = strings.ReplaceAll(row.name, s.subject.SandboxID, "{id}")
		rows = append(rows, row)
	}
	const unknown = "iunknown0000000000000"
	add("GET", "/sandboxes/"+unknown, "", 404)
	add("DELETE", "/sandboxes/"+unknown, "", 404)
	add("POST", "/sandboxes/"+unknown+"/timeout", `{"timeout":10}`, 404)
	add("POST", "/sandboxes/"+unknown+"/connect", `{"timeout":10}`, 404)
	add("POST", "/v2/sandboxes/"+unknown+"/connect", "{}", 404)
	add("POST", "/sandboxes/"+unknown+"/refreshes", "{}", 404)
	add("GET", "/sandboxes/"+unknown+"/metrics", "", 404)
	add("GET", "/sandboxes/"+unknown+"/logs", "", 404)
	add("GET", "/v2/sandboxes/"+unknown+"/logs", "", 404)
	add("GET", "/sandboxes/UPPERCASE", "", 400)
	add("GET", "/sandboxes/two-dashes-here", "", 400)
	add("GET", "/sandboxes/with%20space", "", 400)
	add("GET", "/sandboxes/with%2Fslash", "", 400, 404)
	add("GET", "/sandboxes/..%2Fsandboxes", "", 400, 404)
	add("DELETE", "/sandboxes/%2e%2e", "", 400, 404, 405)
	add("DELETE", "/sandboxes/"+strings.Repeat("a", 300), "", 400, 404)
	add("GET", "/no/such/route", "", 404)
	add("GET", "/", "", 404)
	add("GET", "/v9/sandboxes", "", 404)
	add("GET", "//sandboxes", "", 404)
	add("POST", "/process.Process/List", "{}", 404)
	add("PUT", "/sandboxes", "{}", 405)
	add("PATCH", "/sandboxes/"+unknown, "{}", 405)
	add("DELETE", "/v2/sandboxes", "", 405)
	add("GET", "/sandboxes/"+unknown+"/timeout", "", 405)
	add("TRACE", "/sandboxes", "", 405)
	return rows
}
