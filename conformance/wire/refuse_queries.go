package wire

import (
	"strings"
)

// refusedQueries is query strings that mean nothing.
func refusedQueries(s *Suite) []refusal {
	var rows []refusal
	add := func(path string, queries ...string) {
		for _, query := range queries {
			name := path[strings.LastIndex(path, "/"):] + "?" + query
			if len(name) > 60 {
				name = name[:60]
			}
			rows = append(rows, refusal{
				name:   strings.TrimPrefix(name, "/"),
				call:   call{method: "GET", path: path + "?" + query, header: s.key()},
				status: status(400),
			})
		}
	}
	box := "/sandboxes/" + s.subject.SandboxID
	add("/v2/sandboxes",
		"limit=0", "limit=101", "limit=-1", "limit=ten", "limit=1.5", "limit=99999999999999999999",
		"state=stopped", "state=running,stopped", "order=up", "startedAfter=yesterday", "startedAfter=2026-13-01T00:00:00Z",
		"nextToken=not-a-token", "nextToken=AAAA", "metadata=%25zz%3Db")
	add(box+"/metrics", "start=now", "end=-", "start=1.5")
	add("/sandboxes/metrics", "", "sandbox_ids=", "sandbox_ids="+manyIDs(101))
	add(box+"/logs", "start=abc", "limit=abc")
	add("/v2"+box+"/logs", "limit=1001", "limit=-1", "direction=sideways", "level=loud", "cursor=x", "search="+strings.Repeat("x", 257))
	return rows
}

// manyIDs is so many different ids, separated by commas.
func manyIDs(count int) string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = "i" + strings.Repeat("a", 18) + string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	return strings.Join(ids, ",")
}
