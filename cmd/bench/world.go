package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// worldVariable says that this process is in the world already.
const worldVariable = "ISTHMUS_BENCH_WORLD"

// worldInit is process 1 of the world: it collects orphans, and ends with the bench.
const worldInit = `mount --make-rprivate / && ip link set lo up && trap 'kill -TERM $child' TERM INT; "$@" & child=$!
while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || exit $code; done`

// enterWorld runs the bench again in namespaces of its own, with nothing but loopback: upstream's envd forwards
// whatever listens on the machine, and nothing that is started here must outlive the run.
func enterWorld() int {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: the local backend is measured as root: run it with sudo")
		return 1
	}
	args := append([]string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", worldInit, "world"}, os.Args...)
	world := exec.Command("unshare", args...)
	world.Env = append(os.Environ(), worldVariable+"=1")
	world.Stdin, world.Stdout, world.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := world.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}
