package kubernetes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testHello runs the example of the README on a pod, unchanged as everywhere else.
func testHello(t *testing.T, c *cluster) {
	f := newFacade(t, c)
	out := f.client(top(t, "docs", "examples"), python(t), "hello.py")
	for _, line := range []string{"file       hello from Python\n", "terminal   80 columns\n", "port 8000  hello from Python\n", "killed     True\n"} {
		require.Contains(t, out, line)
	}
	t.Logf("%s", out)
	require.Eventually(t, func() bool { return len(c.alive(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}
