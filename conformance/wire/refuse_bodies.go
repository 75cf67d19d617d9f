package wire

import (
	"net/http"
	"strings"
)

// refusedBodies is JSON that the control plane must not take.
func refusedBodies(s *Suite) []refusal {
	rows := []refusal{}
	add := func(name, path, body string, row refusal) {
		row.name, row.call = name, s.post(path, body)
		if row.status == nil {
			row.status = status(400)
		}
		rows = append(rows, row)
	}
	const create = "/v2/sandboxes"
	box := "/sandboxes/" + s.subject.SandboxID

	add("create without a body", create, "", refusal{})
	add("create with half a body", create, `{"templateID":"base"`, refusal{})
	add("create with null", create, "null", refusal{})
	add("create with an array", create, "[]", refusal{})
	add("create with a string", create, `"base"`, refusal{})
	add("create with something after the body", create, `{"templateID":"base"} {"timeout":1}`, refusal{})
	add("create with text that is no JSON", create, "templateID=base", refusal{})
	add("create without a template", create, "{}", refusal{message: "templateID"})
	add("create with an empty template", create, `{"templateID":""}`, refusal{})
	add("create with a number for the template", create, `{"templateID":7}`, refusal{})
	add("create with a null template", create, `{"templateID":null}`, refusal{})
	add("create with an unknown template", create, `{"templateID":"no-such-template"}`, refusal{status: status(404)})
	add("create with a malformed template", create, `{"templateID":"a/b/c:d:e"}`, refusal{status: status(400, 404)})
	for name, value := range ordered(
		"a time of zero", "0", "a negative time", "-5", "a time beyond the longest life", "86401", "half a second", "1.5",
		"a time beyond int32", "4294967297", "a text for the time", `"60"`, "an object for the time", "{}") {
		add("create with "+name, create, `{"templateID":"base","timeout":`+value+`}`, refusal{})
	}
	for name, value := range ordered(
		"a number in metadata", `{"a":1}`, "a list for metadata", `["a"]`, "an object in metadata", `{"a":{"b":"c"}}`, "null in metadata", `{"a":null}`) {
		add("create with "+name, create, `{"templateID":"base","metadata":`+value+`}`, refusal{})
	}
	add("create with a number in envVars", create, `{"templateID":"base","envVars":{"A":1}}`, refusal{})
	add("create with a text for secure", "/sandboxes", `{"templateID":"base","secure":"yes"}`, refusal{})
	add("create with a text for the network", create, `{"templateID":"base","network":"off"}`, refusal{})
	add("create with a malformed mask of the host", create, `{"templateID":"base","network":{"maskRequestHost":"a b"}}`, refusal{})
	add("create with automatic resume but no choice", create, `{"templateID":"base","autoResume":{}}`, refusal{})
	add("create v1 with private traffic but not secure", "/sandboxes", `{"templateID":"base","network":{"allowPublicTraffic":false}}`, refusal{})
	add("create with tokens of a wrong type", create, `{"templateID":"base","iam":{"tokens":{"a":{"audience":"b","tokenType":"other"}}}}`, refusal{})
	add("create with a volume that does not exist", create, `{"templateID":"base","volumeMounts":[{"name":"no-such-volume","path":"/data"}]}`, refusal{})
	add("connect v1 without a time", box+"/connect", "{}", refusal{message: "timeout"})
	add("connect v1 without a body", box+"/connect", "", refusal{})
	add("connect with a negative time", box+"/connect", `{"timeout":-1}`, refusal{})
	add("connect v2 with half a body", "/v2"+box+"/connect", `{"timeout":`, refusal{})
	add("timeout without a time", box+"/timeout", "{}", refusal{message: "timeout"})
	add("timeout with a negative time", box+"/timeout", `{"timeout":-1}`, refusal{})
	add("timeout with a text", box+"/timeout", `{"timeout":"soon"}`, refusal{})
	add("timeout with null", box+"/timeout", `{"timeout":null}`, refusal{})
	add("refreshes beyond an hour", box+"/refreshes", `{"duration":3601}`, refusal{})
	add("refreshes with a negative time", box+"/refreshes", `{"duration":-1}`, refusal{})
	add("a body over the limit", create, `{"templateID":"base","metadata":{"a":"`+strings.Repeat("x", 17<<20)+`"}}`, refusal{status: status(413)})

	other := refusal{name: "create with a body of another type", call: s.post(create, `{"templateID":"base"}`), status: status(400, 415)}
	other.call.header = http.Header{"X-Api-Key": {s.target.APIKey}, "Content-Type": {"application/xml"}}
	return append(rows, other)
}

// ordered goes through pairs of a name and a value in their order.
func ordered(pairs ...string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}
