package harness

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unenforced are the limits that the facade said at its start that it does not enforce, by comma.
func (f *facade) unenforced() string {
	found := regexp.MustCompile(`not_enforced="?([a-z,]+)`).FindStringSubmatch(f.output.String())
	if found == nil {
		return ""
	}
	return found[1]
}

// testAttacks has programs in sandboxes try everything of conformance/attacks, while the suite looks from the host at
// what they did.
func testAttacks(t *testing.T, s settings) {
	f := newFacade(t, s)
	before := f.traces()
	image, err := filepath.EvalSymlinks(filepath.Join(f.data, "images", "names", "base"))
	require.NoError(t, err)
	unenforced, excused := f.unenforced(), "0"
	if unenforced != "" {
		excused = "[1-9][0-9]*" // what is said not to be enforced is not
	}
	f.told = append(f.told, "ATTACKS_UNENFORCED="+unenforced,
		fmt.Sprintf("ATTACKS_SERVER_PID=%d", f.command.Process.Pid), "ATTACKS_IMAGE="+filepath.Join(image, "root"), "ATTACKS_DATA="+f.data)
	out, err := f.program(t.Context(), top("conformance", "attacks"), python(), "-B", "run.py")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	t.Log(out)
	require.NoError(t, err)
	assert.Regexp(t, regexp.MustCompile(`^[1-9][0-9]* passed, `+excused+` unenforced, 0 failed$`), lines[len(lines)-1])
	f.leavesNothing(t, before)
}
