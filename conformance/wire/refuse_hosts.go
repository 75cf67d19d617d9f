package wire

import (
	"fmt"
	"net/http"
	"strings"
)

// refusedHosts is host names below the server's domain that lead to no port of a sandbox.
func refusedHosts(s *Suite) []refusal {
	domain := ""
	if s.subject.Domain != nil {
		domain = "." + *s.subject.Domain
	}
	id := s.subject.SandboxID
	var rows []refusal
	add := func(name, label string, codes ...int) {
		row := refusal{name: name, byHost: true, status: codes}
		// What names no sandbox may be taken for the control plane, which does not know this path either.
		row.call = call{method: "GET", path: "/envs", host: label + domain, header: http.Header{"X-Access-Token": {s.subject.EnvdAccessToken}}, toSandbox: true}
		rows = append(rows, row)
	}
	add("an unknown sandbox", "49983-iunknown0000000000000", 502)
	add("an unknown sandbox's other port", "8080-iunknown0000000000000", 502)
	add("a closed port", "19998-"+id, 502)
	add("port 0", "0-"+id, 400)
	add("port 65536", "65536-"+id, 400)
	add("a port far too large", "99999999999999999999-"+id, 400)
	add("a port with a sign", "+80-"+id, 400)
	add("a port of letters", "http-"+id, 400)
	add("no port", "-"+id, 400)
	add("no id", "49983-", 400)
	add("neither", "-", 400)
	add("an id that is no word", "49983-a_b", 400)
	add("dots inside", "49983.x-"+id, 400, 404)
	add("a label too much", "x.49983-"+id, 400, 404)
	add("port and id the wrong way round", id+"-49983", 400)
	add("only the id", id, 400, 404)

	disagree := func(name, header, value string) {
		row := refusal{name: name, byHost: true, status: status(400)}
		row.call = call{method: "GET", path: "/health", host: "49983-" + id + domain, header: s.route(), toSandbox: true}
		row.call.header.Set(header, value)
		rows = append(rows, row)
	}
	disagree("a host and a header of different sandboxes", "E2b-Sandbox-Id", s.neighbour.SandboxID)
	disagree("a host and a header of different ports", "E2b-Sandbox-Port", "8080")

	for _, path := range []string{"/init", "/%69nit", "/isthmus/deadline"} {
		row := refusal{name: "internal path " + path, byHost: true, status: status(404)}
		row.call = call{method: "POST", path: path, body: "{}", host: fmt.Sprintf("49983-%s%s", id, domain), header: http.Header{"X-Access-Token": {s.subject.EnvdAccessToken}}, toSandbox: true}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].name = strings.TrimSpace(rows[i].name)
	}
	return rows
}
