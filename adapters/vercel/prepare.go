package vercel

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// preparation gives a box of the vendor's image the user that E2B's programs act as.
const preparation = `id -u user >/dev/null 2>&1 || useradd -m -s /bin/bash user || exit 1
test ! -d /etc/sudoers.d || test -e /etc/sudoers.d/user || { echo 'user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/user && chmod 440 /etc/sudoers.d/user; }`

// prepare makes a fresh box one that E2B's programs can use.
func (p *place) prepare(ctx context.Context, boxID string) error {
	return p.shell(ctx, boxID, preparation)
}

// shell runs a script as root to its end. The arguments are its $1 and so on.
func (p *place) shell(ctx context.Context, boxID, script string, args ...string) error {
	program, err := p.exec(ctx, boxID, append([]string{"/bin/sh", "-c", script, "sh"}, args...), false)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	defer context.AfterFunc(ctx, func() { _ = program.Close() })()
	said, readErr := io.ReadAll(io.LimitReader(program, 4<<10))
	code, err := program.Wait(ctx)
	switch err = errors.Join(readErr, err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return adapters.Wrap(adapters.KindUnavailable, err, "a program could not be run in the sandbox")
	case code != 0:
		return adapters.Errorf(adapters.KindUnavailable, "a program failed in the sandbox: %s", strings.TrimSpace(string(said)))
	}
	return nil
}
