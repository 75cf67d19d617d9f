//go:build linux

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/disk"
)

// copied is one snapshot: a folder with the disk's image and this record. The ids on the disk begin at 0, so that it
// can be any box's.
type copied struct {
	Name       string    `json:"name"`
	Deployment string    `json:"deployment"`
	CreatedAt  time.Time `json:"createdAt"`
	Template   string    `json:"template"`
	Version    string    `json:"version,omitempty"`
	Layers     []string  `json:"layers"`
	DiskMB     int       `json:"diskMB"`

	path string
}

const (
	copiedRecord = "snapshot.json"
	// newPrefix begins the names of folders that are being made or removed; it is in no snapshot's name.
	newPrefix = "new-"
)

// make copies the image. The folder gets its name when it is whole.
func (c *copied) make(ctx context.Context, folder, image string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(folder, newPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // nothing, once it has its name
	to := filepath.Join(temp, imageName)
	if err := disk.Copy(ctx, to, image); err != nil {
		return err
	}
	if err := syncFile(to); err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, copiedRecord), text, 0o600); err != nil {
		return err
	}
	c.path = filepath.Join(folder, c.Name)
	return os.Rename(temp, c.path)
}

func loadCopied(path string) (*copied, error) {
	text, err := os.ReadFile(filepath.Join(path, copiedRecord))
	if err != nil {
		return nil, err
	}
	c := &copied{path: path}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read the snapshot's record: %w", err)
	}
	return c, nil
}

// snapshots reads all copies in a folder; none when there is no such folder.
func snapshots(folder string) ([]*copied, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*copied
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			continue
		}
		c, err := loadCopied(filepath.Join(folder, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func (c *copied) describe() adapters.Snapshot {
	s := adapters.Snapshot{ // its folder gets this name only when all is in it
		Name: c.Name, Ref: c.Name, Deployment: c.Deployment, Level: adapters.LevelFilesystem, CreatedAt: c.CreatedAt, Ready: true,
	}
	if info, err := os.Stat(filepath.Join(c.path, imageName)); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			s.SizeBytes = st.Blocks * 512
		}
	}
	return s
}
