//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local/inside/proctree"
)

// What a box without isolation has in its folder: a home, and a list of users in which everybody is the user
// that we run as.
const (
	bareHome  = "home"
	bareUsers = "etc"
	bareRun   = "run"
)

// habitat makes those folders.
func (m *maker) habitat() error {
	for _, name := range []string{bareHome, bareUsers, bareRun} {
		if err := os.Mkdir(filepath.Join(m.path, name), 0o755); err != nil {
			return err
		}
	}
	uid, gid, home := os.Getuid(), os.Getgid(), filepath.Join(m.path, bareHome)
	passwd := fmt.Sprintf("root:x:%d:%d::%s:/bin/bash\nuser:x:%[1]d:%[2]d::%[3]s:/bin/bash\n", uid, gid, home)
	group := fmt.Sprintf("root:x:%d:\nuser:x:%[1]d:\n", gid)
	for name, text := range map[string]string{"passwd": passwd, "group": group} {
		if err := os.WriteFile(filepath.Join(m.path, bareUsers, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// endBare ends what runs below a box's envd where no process namespace does it.
func (l *Local) endBare(ctx context.Context, b *box) error {
	if !l.tier.bare || !b.alive() {
		return nil
	}
	return proctree.EndBelow(ctx, b.as().record.Process.PID)
}

// rootOf finds the root file system of a template. Without isolation it is the machine's own, whatever the
// template is called.
func (l *Local) rootOf(ctx context.Context, name string) (Root, error) {
	if !l.tier.bare {
		return l.config.Images.Root(ctx, name)
	}
	switch name {
	case "base", "node", "python", TemplateID("base"):
		return Root{Name: "base"}, nil
	}
	return Root{}, adapters.Errorf(adapters.KindNotFound, "template '%s' not found: there are base, node and python", name)
}
