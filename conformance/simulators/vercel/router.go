//go:build linux

package vercel

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxBody bounds a JSON body.
const maxBody = 1 << 20

// answer handles a call whose answer is JSON.
type answer func(r *http.Request) (any, error)

// created is an answer about something that was not there before.
type created struct{ body any }

// stream handles a call that writes its answer itself; an error before that is answered.
type stream func(w http.ResponseWriter, r *http.Request) error

// register names the operations. A name is what faults and counters know an operation by.
func (s *Server) register() {
	for pattern, op := range map[string]struct {
		name string
		do   answer
	}{
		"POST /v3/sandboxes":                               {"create", s.create},
		"POST /v2/sandboxes":                               {"create", s.create},
		"GET /v2/sandboxes":                                {"list", s.list},
		"GET /v2/sandboxes/{name}":                         {"get", s.get},
		"PATCH /v2/sandboxes/{name}":                       {"update", s.update},
		"DELETE /v2/sandboxes/{name}":                      {"delete", s.remove},
		"POST /v2/sandboxes/{name}/{action}":               {"fork", s.fork},
		"GET /v2/sandboxes/sessions":                       {"sessions", s.listSessions},
		"GET /v2/sandboxes/sessions/{id}":                  {"session", s.getSession},
		"POST /v2/sandboxes/sessions/{id}/stop":            {"stop", s.stop},
		"POST /v2/sandboxes/sessions/{id}/extend-timeout":  {"extend", s.extend},
		"POST /v2/sandboxes/sessions/{id}/network-policy":  {"policy", s.setPolicy},
		"POST /v2/sandboxes/sessions/{id}/snapshot":        {"snapshot", s.takeSnapshot},
		"POST /v3/sandboxes/sessions/{id}/snapshot":        {"snapshot", s.takeSnapshot},
		"POST /v2/sandboxes/sessions/{id}/interactive":     {"interactive", s.openInteractive},
		"GET /v2/sandboxes/sessions/{id}/cmd":              {"commands", s.listCommands},
		"GET /v2/sandboxes/sessions/{id}/cmd/{cmd}":        {"command", s.getCommand},
		"POST /v2/sandboxes/sessions/{id}/cmd/{cmd}/kill":  {"kill", s.killCommand},
		"POST /v2/sandboxes/sessions/{id}/cmd/{cmd}/stdin": {"stdin", s.writeStdin},
		"POST /v2/sandboxes/sessions/{id}/fs/mkdir":        {"mkdir", s.makeFolder},
		"POST /v2/sandboxes/sessions/{id}/fs/write":        {"write", s.writeFiles},
		"GET /v2/sandboxes/snapshots":                      {"snapshots", s.listSnapshots},
		"GET /v2/sandboxes/snapshots/tree":                 {"tree", s.snapshotTree},
		"GET /v2/sandboxes/snapshots/{id}":                 {"getSnapshot", s.getSnapshot},
		"DELETE /v2/sandboxes/snapshots/{id}":              {"deleteSnapshot", s.deleteSnapshot},
		"GET /v2/sandboxes/drives":                         {"drives", s.listDrives},
		"GET /v2/sandboxes/drives/{drive}":                 {"drive", s.getDrive},
		"POST /v2/sandboxes/drives/{drive}":                {"makeDrive", s.makeDrive},
		"POST /v2/sandboxes/drives/{drive}/fork":           {"forkDrive", s.forkDrive},
		"DELETE /v2/sandboxes/drives/{drive}":              {"deleteDrive", s.deleteDrive},
	} {
		s.api.Handle(pattern, s.operation(op.name, func(w http.ResponseWriter, r *http.Request) error {
			body, err := op.do(r)
			if fresh, isNew := body.(created); err == nil && isNew {
				writeJSON(w, http.StatusCreated, fresh.body)
			} else if err == nil {
				writeJSON(w, http.StatusOK, body)
			}
			return err
		}))
	}
	s.api.Handle("POST /v2/sandboxes/sessions/{id}/cmd", s.operation("run", s.runCommand))
	s.api.Handle("GET /v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", s.operation("logs", s.commandLogs))
	s.api.Handle("POST /v2/sandboxes/sessions/{id}/fs/read", s.operation("read", s.readFile))
	s.api.Handle("/", s.operation("unknown", func(http.ResponseWriter, *http.Request) error { return notFound("The endpoint") }))
}

// operation puts who may call, what goes wrong and what is counted before a handler.
func (s *Server) operation(name string, do stream) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := name
		if name == "get" && r.URL.Query().Get("resume") == "true" {
			name = "resume" // it costs what a create costs
		}
		counted := s.stats.begin(name, w, r)
		defer counted.done()
		fault := s.faults.next(name)
		if err := s.admit(r); err != nil {
			writeFailure(counted, err)
			return
		}
		fault.apply(counted, r, func(w http.ResponseWriter) {
			if err := do(w, r); err != nil {
				writeFailure(w, err)
			}
		})
	})
}

// admit looks at the credentials.
func (s *Server) admit(r *http.Request) error {
	query := r.URL.Query()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.config.Token:
		return fail(http.StatusUnauthorized, "not_authorized", "The token is not valid.")
	case query.Get("teamId") != "" && query.Get("teamId") != s.config.Team:
		return fail(http.StatusForbidden, "forbidden", "You do not have access to this team.")
	}
	for _, key := range []string{"project", "projectId"} {
		if project := query.Get(key); project != "" && project != s.config.Project {
			return notFound("The project")
		}
	}
	return nil
}

// read decodes a JSON body; nothing is an empty object.
func read(r *http.Request, into any) error {
	err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return badRequest("The body is not the JSON that this endpoint takes: " + err.Error())
	}
	return nil
}
