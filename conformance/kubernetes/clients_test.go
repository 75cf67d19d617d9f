package kubernetes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gated are the files of which the cluster decides more than envd does.
func gated() []string {
	return []string{"tests/test_sandbox.py", "tests/test_commands.py", "tests/test_pty.py", "tests/test_ports.py", "tests/test_observe.py"}
}

// testPython runs the suite of the unmodified Python client on pods. What needs a way to the internet is not run: the
// cluster has none.
func testPython(t *testing.T, c *cluster) {
	f := newFacade(t, c)
	args := []string{"-m", "pytest", "-q", "--color=no", "--durations=5", "-rs"}
	if os.Getenv("ISTHMUS_TEST") == "soak" {
		fmt.Println("in the gate these alone, all of them in make test-kubernetes:", gated())
		args = append(args, gated()...)
	}
	out := f.client(top(t, "conformance", "sdk", "python"), python(t), args...)
	fmt.Println(last(out, 12))
	require.Eventually(t, func() bool { return len(c.alive(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}

// testJavaScript runs the suite of the unmodified JavaScript client on pods.
func testJavaScript(t *testing.T, c *cluster) {
	f := newFacade(t, c)
	out := f.client(node(t), "node", "--test", "--test-reporter=spec", "--test-concurrency=2", "tests/")
	fmt.Println(last(out, 9))
	require.Eventually(t, func() bool { return len(c.alive(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}

// last returns the last lines of a text.
func last(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
