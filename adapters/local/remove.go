//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

// removeAll removes a box's folder. As an ordinary user, files of the box's other users are not ours to
// remove: envd does it, as root of a user namespace with the box's ids.
func (l *Local) removeAll(ctx context.Context, path string) error {
	err := os.RemoveAll(path)
	if err == nil || !l.tier.shared() || !errors.Is(err, os.ErrPermission) {
		return err
	}
	s, err := l.tier.launch(l.envd, 1, unix.CLONE_NEWUSER, 0, nil)
	if err != nil {
		return err
	}
	defer func() { // it has answered, or is not to be waited for
		_ = s.control.Close()
		_ = unix.Close(s.pidfd)
		_ = s.process.Kill()
		_, _ = s.process.Wait()
	}()
	if err := l.tier.writeMaps(ctx, s.process.Pid); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := handover.Send(s.control, inside.Setup{SwitchIDs: true, Remove: path}); err != nil {
		return err
	}
	var done inside.Ready
	fds, err := handover.Receive(s.control, &done)
	handover.CloseAll(fds)
	if err == nil && done.Error != "" {
		err = errors.New(done.Error)
	}
	if err != nil {
		return fmt.Errorf("remove the box's folder: %w", err)
	}
	return nil
}
