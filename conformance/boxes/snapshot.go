//go:build linux

package boxes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
)

// copiesFolder holds the copies, beside the boxes. No box has this name.
const copiesFolder = "-copies"

// copyRef starts the place's own word for a copy.
const copyRef = "copy-of-"

// Snapshot copies what the box changed of its file system, while its processes stand still.
func (c *Cloud) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	m, err := c.living(spec.BoxID)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	if known, there := c.copy(copyRef + name); there {
		return known, nil
	}
	if err := m.signal(unix.SIGSTOP); err != nil {
		return adapters.Snapshot{}, adapters.Wrap(adapters.KindUnavailable, err, "the box does not stand still")
	}
	err = replicate(ctx, filepath.Join(m.dir, "up"), c.copyPath(copyRef+name))
	if again := m.signal(unix.SIGCONT); again != nil {
		return adapters.Snapshot{}, adapters.Wrap(adapters.KindUnknownOutcome, again, "the box does not go on")
	}
	if err != nil {
		return adapters.Snapshot{}, adapters.Wrap(adapters.KindUnavailable, err, "the box could not be copied")
	}
	made := adapters.Snapshot{
		Name: name, Ref: copyRef + name, Deployment: m.spec.Deployment, Level: adapters.LevelFilesystem, CreatedAt: time.Now(), Ready: true,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copies[made.Ref] = made
	return made, nil
}

// Snapshots returns the copies with a label.
func (c *Cloud) Snapshots(_ context.Context, deployment string) ([]adapters.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []adapters.Snapshot
	for _, one := range c.copies {
		if one.Deployment == deployment {
			list = append(list, one)
		}
	}
	return list, nil
}

// Forget removes a copy. No box needs it: each has files of its own.
func (c *Cloud) Forget(_ context.Context, snapshot adapters.Snapshot) error {
	if _, there := c.copy(snapshot.Ref); !there {
		return nil
	}
	if err := os.RemoveAll(c.copyPath(snapshot.Ref)); err != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, "the copy could not be removed")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.copies, snapshot.Ref)
	return nil
}

func (c *Cloud) copy(ref string) (adapters.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, there := c.copies[ref]
	return one, there
}

func (c *Cloud) copyPath(ref string) string { return filepath.Join(c.dir, copiesFolder, ref) }

// fill gives a box the files of a copy before it is started.
func (c *Cloud) fill(ctx context.Context, m *machine, ref string) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	return replicate(ctx, c.copyPath(ref), filepath.Join(m.dir, "up"))
}

// known says whether boxes can be made of a template.
func (c *Cloud) known(ctx context.Context, template adapters.Template) error {
	if template.Snapshot == "" {
		_, err := c.Resolve(ctx, template.ID)
		return err
	}
	if _, there := c.copy(template.Snapshot); !there {
		return adapters.Errorf(adapters.KindNotFound, "there is no copy %s", template.Snapshot)
	}
	return nil
}

// replicate copies a folder with all that it is made of, as one step: what is half copied has another name.
func replicate(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	part := to + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, part).CombinedOutput(); err != nil {
		_ = os.RemoveAll(part)
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return os.Rename(part, to)
}
