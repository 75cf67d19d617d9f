// Package keep keeps on a volume what programs changed in a root file system, and brings it into a fresh one of the same
// image: what a pause keeps of a container, whose own file system ends with it.
//
// Index notes what the image brought, before any program runs. Save writes what is different since then as one archive:
// files, folders, links and pipes with their owners, modes, times and extended attributes, and what is gone. Restore
// applies it. What is mounted is not looked into. Holes of files are written out.
package keep

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Keep is a root file system, and a folder on a volume that outlives it.
type Keep struct {
	root, folder string
	mounts       map[string]bool
}

const (
	indexName   = "index"
	archiveName = "changes.tar"
	partSuffix  = ".part"
	folderMode  = 0o700
	fileMode    = 0o600
)

// Open prepares the folder for the root file system of this process.
func Open(folder string) (*Keep, error) {
	mounts, err := mounted("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return open("/", folder, mounts)
}

func open(root, folder string, mounts map[string]bool) (*Keep, error) {
	k := &Keep{root: root, folder: folder, mounts: mounts}
	k.mounts[filepath.Clean(folder)] = true
	return k, os.MkdirAll(folder, folderMode)
}

// mounted are the paths on which something is mounted, as proc(5) lists them.
func mounted(list string) (map[string]bool, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] != "/" {
			all[escapes.Replace(fields[4])] = true
		}
	}
	return all, nil
}

// Forget removes what an earlier Save wrote.
func (k *Keep) Forget() error { return ignoreAbsent(os.Remove(k.at(archiveName))) }

func (k *Keep) at(name string) string { return filepath.Join(k.folder, name) }

func ignoreAbsent(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// write makes a file of the folder, in one step and on the disk when it returns.
func (k *Keep) write(ctx context.Context, name string, content func(context.Context, *os.File) error) (err error) {
	part := k.at(name + partSuffix)
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	err = content(ctx, file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(part, k.at(name)); err != nil {
		return err
	}
	folder, err := os.Open(k.folder)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
