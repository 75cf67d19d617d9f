//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
	"github.com/isthmus/isthmus/adapters/local/proc"
)

// record is what a later facade must know to find, reach and remove a box. It is written before each step
// that leaves something behind, and holds no secret.
type record struct {
	BoxID      string    `json:"boxID"`
	Attempt    string    `json:"attempt"`
	Deployment string    `json:"deployment"`
	SandboxID  string    `json:"sandboxID"`
	TeamID     string    `json:"teamID"`
	CreatedAt  time.Time `json:"createdAt"`

	Resources adapters.Resources `json:"resources"`
	Template  string             `json:"template"`
	// Layers are the folders of the template that the box is made of; not nil, for whoever asks what is in use.
	Layers []string `json:"layers"`
	// Version is the template's: what the box was made of.
	Version string `json:"version,omitempty"`
	// Snapshot is the copy that the box is made of; empty: none.
	Snapshot string `json:"snapshot,omitempty"`
	// Paused says that the box is stopped, or about to be, and is to be kept.
	Paused bool `json:"paused,omitempty"`
	// Stocked says that the box was made ahead and serves nobody yet.
	Stocked bool `json:"stocked,omitempty"`
	// Internet says that the box has the sockets that its traffic is carried by. Reach is what may be carried.
	Internet bool  `json:"internet"`
	Reach    reach `json:"reach"`

	// Process is PID 1; zero while it is not started.
	Process proc.ID `json:"process"`
	// FirstID is the first host id of the box's range; zero: the user's own range.
	FirstID uint32        `json:"firstID,omitempty"`
	Cgroup  *cgroup.Group `json:"cgroup,omitempty"`
	// Device is the loop device of the disk image.
	Device string `json:"device,omitempty"`
}

// RecordName is the file in a box's folder that a later facade knows the box by.
const RecordName = "box.json"

// save replaces the record in the box's folder.
func (r *record) save(folder string) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	next := filepath.Join(folder, RecordName+".new")
	if err := os.WriteFile(next, body, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(folder, RecordName))
}

// loadRecord reads the record in a box's folder. Where there is none, or a half one, the facade or the machine died
// before anything but folders was there: the empty record. An error says that nothing is known of the box.
func loadRecord(folder string) (record, error) {
	body, err := os.ReadFile(filepath.Join(folder, RecordName))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	r := record{Reach: reach{Internet: true}} // what boxes with sockets could reach before it was written down
	if json.Unmarshal(body, &r) != nil {
		return record{}, nil
	}
	return r, nil
}
