package wire

import (
	"slices"
)

// state is all of a team that a bad request could have changed, in a form that can be compared.
type state struct {
	// Sandboxes are the team's, each with its end.
	Sandboxes []string
	// Detail is the subject as a get shows it.
	Detail string
	// Files are the subject's below its home, with size, mode, owner and time.
	Files []string
	// Processes are the pids of the subject's commands.
	Processes []int
}

// entry is a file as the filesystem service shows it.
type entry struct {
	Name          string            `json:"name"`
	Type          string            `json:"type"`
	Path          string            `json:"path"`
	Size          string            `json:"size"`
	Mode          int               `json:"mode"`
	Permissions   string            `json:"permissions"`
	Owner         string            `json:"owner"`
	Group         string            `json:"group"`
	ModifiedTime  string            `json:"modifiedTime"`
	SymlinkTarget *string           `json:"symlinkTarget"`
	IsSymlink     bool              `json:"isSymlink"`
	Metadata      map[string]string `json:"metadata"`
}

// process is a command as List shows it.
type process struct {
	PID    int    `json:"pid"`
	Tag    string `json:"tag"`
	Config struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args"`
		Envs map[string]string `json:"envs"`
		Cwd  string            `json:"cwd"`
	} `json:"config"`
}

// state looks at the team and at the subject.
func (s *Suite) state(t T) state {
	t.Helper()
	var now state
	listed := decode[[]struct {
		SandboxID string `json:"sandboxID"`
		EndAt     string `json:"endAt"`
	}](t, s.expect(t, 200, call{method: "GET", path: "/v2/sandboxes", header: s.key()}).body)
	for _, box := range listed {
		now.Sandboxes = append(now.Sandboxes, box.SandboxID+" until "+box.EndAt)
	}
	slices.Sort(now.Sandboxes)
	now.Detail = string(s.expect(t, 200, call{method: "GET", path: "/sandboxes/" + s.subject.SandboxID, header: s.key()}).body)
	for _, file := range s.list(t, "/home/user", 8) {
		now.Files = append(now.Files, encode(file))
	}
	for _, running := range s.processes(t) {
		now.Processes = append(now.Processes, running.PID)
	}
	slices.Sort(now.Processes)
	return now
}

// list is the entries below a folder of the subject.
func (s *Suite) list(t T, path string, depth int) []entry {
	t.Helper()
	got := s.expect(t, 200, s.rpc("filesystem.Filesystem/ListDir", encode(map[string]any{"path": path, "depth": depth})))
	return decode[struct {
		Entries []entry `json:"entries"`
	}](t, got.body).Entries
}

// processes is the subject's commands.
func (s *Suite) processes(t T) []process {
	t.Helper()
	got := s.expect(t, 200, s.rpc("process.Process/List", "{}"))
	return decode[struct {
		Processes []process `json:"processes"`
	}](t, got.body).Processes
}
