package harness

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// underGVisor has sandboxes with a kernel of their own.
func underGVisor() settings {
	return settings{lines: "local:\n  isolation: gvisor\n  runsc: " + top("bin", "runsc") + "\n"}
}

// testGVisorPython runs what depends on the kernel of a sandbox. What is left out: without memory gVisor ends the
// sandbox, not the command alone.
func testGVisorPython(t *testing.T) {
	suite(t, newFacade(t, underGVisor()), top("conformance", "sdk", "python"), python(), "-m", "pytest", "-q", "--color=no",
		"tests/test_sandbox.py", "tests/test_commands.py", "tests/test_files.py", "tests/test_network.py", "tests/test_packages.py",
		"tests/test_ports.py", "tests/test_pty.py", "tests/test_watch.py")
}

// testGVisorPool has a program say how its sandbox is to be separated: by default it gets one that shares the kernel.
func testGVisorPool(t *testing.T) {
	f := newFacade(t, settings{lines: `local:
  warm: {}
  runsc: ` + top("bin", "runsc") + `
pools:
- {name: shared, provider: local}
- {name: own, provider: local, isolation: gvisor}
`})
	before := f.traces()
	const program = `
from e2b import Sandbox
for require, own in (({}, False), ({"isthmus:isolation": "gvisor"}, True)):
    with Sandbox.create(metadata=require) as box:
        assert ("gvisor" in box.commands.run("cat /proc/version").stdout) == own, require
print("placed")`
	out, err := f.program(t.Context(), top("conformance", "sdk", "python"), python(), "-c", program)
	require.NoError(t, err)
	require.Equal(t, "placed", strings.TrimSpace(out))
	f.leavesNothing(t, before)
}
