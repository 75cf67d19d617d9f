package daytona

import (
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// toolCall is one request to the daemon in a sandbox.
type toolCall struct {
	*http.Request
	sb  *sandbox
	box *machine.Box
	// frames says that a stream comes in frames of one byte.
	frames bool
}

// tool is one call of the daemon. Its name is what faults are aimed by. One with stream answers by itself, and an
// error only before it began.
type tool struct {
	name    string
	pattern string
	run     func(c *toolCall) (reply, error)
	stream  func(w http.ResponseWriter, c *toolCall) error
}

func (s *Simulator) tools() []tool {
	return []tool{
		{name: "execute", pattern: "POST /process/execute", run: execute},
		{name: "code", pattern: "POST /process/code-run", run: codeRun},
		{name: "session", pattern: "POST /process/session", run: createSession},
		{name: "sessions", pattern: "GET /process/session", run: listSessions},
		{name: "get session", pattern: "GET /process/session/{session}", run: getSession},
		{name: "delete session", pattern: "DELETE /process/session/{session}", run: deleteSession},
		{name: "exec", pattern: "POST /process/session/{session}/exec", run: execInSession},
		{name: "command", pattern: "GET /process/session/{session}/command/{command}", run: getCommand},
		{name: "input", pattern: "POST /process/session/{session}/command/{command}/input", run: sendInput},
		{name: "logs", pattern: "GET /process/session/{session}/command/{command}/logs", stream: serveLogs},
		{name: "pty", pattern: "POST /process/pty", run: createPTY},
		{name: "ptys", pattern: "GET /process/pty", run: listPTYs},
		{name: "get pty", pattern: "GET /process/pty/{pty}", run: getPTY},
		{name: "delete pty", pattern: "DELETE /process/pty/{pty}", run: deletePTY},
		{name: "resize pty", pattern: "POST /process/pty/{pty}/resize", run: resizePTY},
		{name: "connect pty", pattern: "GET /process/pty/{pty}/connect", stream: connectPTY},
		{name: "create pty", pattern: "GET /process/pty/create-connect", stream: createConnectPTY},
		{name: "files", pattern: "GET /files", run: listFiles},
		{name: "stat", pattern: "GET /files/info", run: statFile},
		{name: "download", pattern: "GET /files/download", stream: downloadFile},
		{name: "download", pattern: "POST /files/bulk-download", stream: bulkDownload},
		{name: "upload", pattern: "POST /files/bulk-upload", run: bulkUpload},
		{name: "upload", pattern: "POST /files/upload", run: uploadFile},
		{name: "upload", pattern: "POST /files/upload-v2", run: uploadFile},
		{name: "folder", pattern: "POST /files/folder", run: makeFolder},
		{name: "delete file", pattern: "DELETE /files", run: deleteFile},
		{name: "move", pattern: "POST /files/move", run: moveFile},
		{name: "permissions", pattern: "POST /files/permissions", run: setPermissions},
		{name: "find", pattern: "GET /files/find", run: findInFiles},
		{name: "search", pattern: "GET /files/search", run: searchFiles},
		{name: "work dir", pattern: "GET /work-dir", run: homeFolder},
		{name: "home dir", pattern: "GET /user-home-dir", run: homeFolder},
		{name: "version", pattern: "GET /version", run: version},
	}
}

type toolKey struct{}

func (s *Simulator) serveToolbox() *http.ServeMux {
	mux := http.NewServeMux()
	for _, one := range s.tools() {
		mux.HandleFunc(one.pattern, func(w http.ResponseWriter, r *http.Request) { s.runTool(w, r, one) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, ofDaemon(http.StatusNotFound, "NOT_FOUND", "there is no "+r.Method+" "+r.URL.Path))
	})
	return mux
}

// toolboxOf passes a request on to the daemon of its sandbox.
func (s *Simulator) toolboxOf(w http.ResponseWriter, r *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/toolbox/"), "/")
	sb := s.find(id)
	if sb == nil {
		refuse(w, r, notFound("Sandbox with ID or name "+id+" not found"))
		return
	}
	box, err := sb.running()
	if err != nil {
		refuse(w, r, err)
		return
	}
	sb.touch()
	inner := r.Clone(context.WithValue(r.Context(), toolKey{}, &toolCall{sb: sb, box: box}))
	inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
	s.toolbox.ServeHTTP(w, inner)
}

func (s *Simulator) runTool(w http.ResponseWriter, r *http.Request, one tool) {
	c, _ := r.Context().Value(toolKey{}).(*toolCall)
	call := &toolCall{Request: r, sb: c.sb, box: c.box}
	struck := s.faults.strike(one.name)
	if struck.before(w, r) {
		return
	}
	call.frames = struck.is(FaultFrames)
	var done reply
	var err error
	if one.stream != nil {
		err = one.stream(w, call)
	} else {
		done, err = one.run(call)
	}
	switch {
	case struck.after(w, r):
	case err != nil:
		refuse(w, r, err)
	case one.stream == nil:
		answer(w, done.status, done.body)
	}
}

// home is the folder of the sandbox's user.
func (c *toolCall) home() string {
	if c.sb.facts.User == "root" {
		return "/root"
	}
	return "/home/" + c.sb.facts.User
}

// absolute is a path as the daemon sees it: relative ones begin at home.
func (c *toolCall) absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(c.home(), name)
}

func homeFolder(c *toolCall) (reply, error) { return ok(map[string]any{"dir": c.home()}) }

func version(*toolCall) (reply, error) { return ok(map[string]any{"version": daemonVersion}) }
