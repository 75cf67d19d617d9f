//go:build linux

package gvisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// record is what a later facade must know to find, reach and remove a box. It is written before each step that
// leaves something behind, and holds no secret.
type record struct {
	BoxID      string    `json:"boxID"`
	Attempt    string    `json:"attempt"`
	Deployment string    `json:"deployment"`
	SandboxID  string    `json:"sandboxID"`
	CreatedAt  time.Time `json:"createdAt"`

	Resources adapters.Resources `json:"resources"`
	// Layers are the folders of the template that the box is made of, for whoever asks what is in use.
	Layers   []string `json:"layers"`
	Internet bool     `json:"internet"`
	// Sandbox is the process that is the box; zero while it is not started.
	Sandbox proc.ID       `json:"sandbox"`
	Cgroup  *cgroup.Group `json:"cgroup,omitempty"`
}

// save replaces the record in the box's folder.
func (r *record) save(folder string) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	next := filepath.Join(folder, local.RecordName+".new")
	if err := os.WriteFile(next, body, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(folder, local.RecordName))
}

// load reads the record in a box's folder; where there is none, or a half one, nothing but folders was made.
func load(folder string) (record, error) {
	var r record
	body, err := os.ReadFile(filepath.Join(folder, local.RecordName))
	if os.IsNotExist(err) || err == nil && json.Unmarshal(body, &r) != nil {
		return record{}, nil
	}
	return r, err
}

func (r record) describe(alive bool) adapters.Box {
	return adapters.Box{ID: r.BoxID, Attempt: r.Attempt, Deployment: r.Deployment, SandboxID: r.SandboxID, CreatedAt: r.CreatedAt, Alive: alive}
}
