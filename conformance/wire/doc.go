// Package wire checks an E2B-compatible server from outside, request by request: the REST control plane, the
// Connect services and the file routes of a sandbox, and what is answered to bad input of every kind.
//
// It knows no client library and nothing of Isthmus: it runs against any URL, under `go test` and from the
// `isthmus conformance` command alike. The key that it is given should belong to a team that is otherwise
// idle, because every refused request is followed by a look whether anything of the team has changed.
package wire
