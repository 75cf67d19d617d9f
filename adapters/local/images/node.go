package images

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The packages of npm's registry that hold Node as one binary, and an npm that fits it.
const (
	nodeRelease = "22"
	npmRelease  = "10"
)

// packNode fetches Node and npm with the host's npm, from where that is set up to get packages, into dir. It
// returns the two files, or nothing where that cannot be had: then they come from Debian.
func packNode(ctx context.Context, dir string, progress io.Writer) (node, npm string) {
	arch, ok := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if !ok {
		return "", ""
	}
	name := "node-linux-" + arch
	c := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", dir, "--cache", filepath.Join(dir, "cache"),
		name+"@"+nodeRelease, "npm@"+npmRelease)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		_, _ = fmt.Fprintf(progress, "npm cannot fetch Node (%v: %s): taking Debian's\n", err, lastLine(out))
		return "", ""
	}
	return one(filepath.Join(dir, name+"-*.tgz")), one(filepath.Join(dir, "npm-*.tgz"))
}

// one is the only file of the pattern, or nothing.
func one(pattern string) string {
	if found, err := filepath.Glob(pattern); err == nil && len(found) == 1 {
		return found[0]
	}
	return ""
}
