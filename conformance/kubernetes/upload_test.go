package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// uploaded is the size of a large upload, grown is how much memory the facade and envd may take more for it, in MiB.
	uploaded = 1 << 10
	grown    = 128
)

// testUpload uploads 1 GiB with the unmodified client, and kills a sandbox while a command runs in it. The memory of the
// facade and of envd stays what it was.
func testUpload(t *testing.T, c *cluster) {
	f := newFacade(t, c)
	done := make(chan struct{})
	most := make(chan int, 1)
	go func() { most <- peakOfEnvd(t, done) }()
	before := peak(f.command.Process.Pid)
	out := f.client(top(t, "conformance", "sdk", "python"), python(t), "upload.py", strconv.Itoa(uploaded))
	close(done)
	var upload struct {
		Sum, There string
		Took       float64
	}
	var kill struct {
		Ended string
		After float64
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2, out)
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &upload))
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &kill))
	require.Equal(t, upload.Sum, upload.There, "another file arrived")
	facade, inside := peak(f.command.Process.Pid)-before, <-most
	fmt.Printf("upload of %d MiB: %.1f s, the facade's memory grew by %d MiB, envd took %d MiB at most\n", uploaded, upload.Took, facade, inside)
	require.Less(t, facade, grown, "the facade holds what is uploaded")
	require.Less(t, inside, grown, "envd holds what is uploaded")
	require.Positive(t, inside, "envd was not seen")
	fmt.Printf("kill during a run: the wait ended with %s after %.2f s\n", kill.Ended, kill.After)
	require.Contains(t, []string{"SandboxNotRunningException", "SandboxNotFoundException"}, kill.Ended)
	require.Less(t, kill.After, 10.0)
	require.Eventually(t, func() bool { return len(c.alive(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}

// peak is the most memory that a process has had, in MiB; 0: it is gone.
func peak(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib >> 10
}

// peakOfEnvd is the most memory that any envd in a pod has had until done, in MiB.
func peakOfEnvd(t *testing.T, done <-chan struct{}) int {
	most := 0
	for {
		for _, pid := range processes(t, isEnvd) {
			most = max(most, peak(pid))
		}
		select {
		case <-done:
			return most
		case <-time.After(200 * time.Millisecond):
		}
	}
}
