package daytona

import (
	"context"
	"fmt"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// freeze has every program in a box stand still where it is, with its memory. It returns when none runs.
func freeze(ctx context.Context, box *machine.Box) error { return inside(ctx, box, freezing) }

// thaw has them go on.
func thaw(ctx context.Context, box *machine.Box) error { return inside(ctx, box, thawing) }

// Programs that are born meanwhile are found by the next round. The first one drives the box, and is not the sandbox's.
const (
	others   = `for p in /proc/[0-9]*; do p=${p#/proc/}; case $p in 1|$$|$PPID) continue;; esac; `
	freezing = `round=0; while [ "$((round += 1))" -lt 1000 ]; do run=; ` + others + `read -r s 2>/dev/null <"/proc/$p/stat" || continue
case ${s##*) } in [TtZX]*) ;; *) run=$p; kill -STOP "$p" 2>/dev/null;; esac; done; [ "$run" ] || exit 0; done; exit 1`
	thawing = others + `kill -CONT "$p" 2>/dev/null; done; exit 0`
)

func inside(ctx context.Context, box *machine.Box, script string) error {
	code, out, err := run(ctx, box, machine.Command{Argv: []string{"/bin/sh", "-c", script}})
	if err == nil && code != 0 {
		err = fmt.Errorf("not all programs could be stopped: %s", strings.TrimSpace(string(out)))
	}
	return err
}
