//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Layers returns the folders that the boxes and snapshots of a data folder are made of, whether a facade runs there or not.
// An error means that it cannot be told for all boxes: then no layer may be removed.
func Layers(dataDir string) ([]string, error) {
	var used []string
	for _, form := range []string{"local", "gvisor"} {
		more, err := layersIn(filepath.Join(dataDir, form, dirBoxes))
		if err != nil {
			return nil, err
		}
		used = append(used, more...)
	}
	kept, err := snapshots(filepath.Join(dataDir, "local", dirSnapshots))
	for _, one := range kept {
		used = append(used, one.Layers...)
	}
	return used, err
}

// layersIn are those of the boxes in one folder, whose records name them alike in all forms.
func layersIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var used []string
	for _, e := range entries {
		r, err := loadRecord(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("box %s: %w", e.Name(), err)
		}
		if r.BoxID == "" {
			return nil, fmt.Errorf("box %s is coming, going or becoming another's", e.Name())
		}
		if r.Layers == nil {
			return nil, fmt.Errorf("box %s was made by an Isthmus that did not write its layers down", e.Name())
		}
		used = append(used, r.Layers...)
	}
	return used, nil
}
