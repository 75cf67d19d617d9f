package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testChurn kills the facade at random moments while clients make, use and kill sandboxes: none that a client was
// given is lost, none is made twice, and nothing is left.
func testChurn(t *testing.T, crashes int) {
	const clients = 20
	f := newFacade(t, settings{})
	before := f.traces()
	p := f.converse(t, "churn.py", strconv.Itoa(clients))
	for range crashes {
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // the moment is what is tried
		f.kill()
		f.start()
	}
	p.hangUp(t)
	var seen struct{ Used, Unanswered, Lost, Doubled int }
	require.NoError(t, json.Unmarshal([]byte(p.hear(t)), &seen))
	require.NoError(t, p.command.Wait(), "%s", p.log)
	t.Logf("%d crashes: %+v\n%s", crashes, seen, p.log)
	assert.Positive(t, seen.Used)
	assert.Zero(t, seen.Lost)
	assert.Zero(t, seen.Doubled)
	f.leavesNothing(t, before)
}

// testLeaks does one thing many times and compares, from outside, what the processes hold after a tenth of it with what
// they hold after all.
func testLeaks(t *testing.T, what string, times int) {
	f := newFacade(t, settings{lines: "operator: {listen: " + operatorAddress + "}\n"})
	before := f.traces()
	p := f.converse(t, "leaks.py", what, strconv.Itoa(times))
	sandbox := p.hear(t)
	early := f.settled(t, sandbox)
	p.say(t)
	require.Equal(t, "done", p.hear(t), "%s", p.log)
	late := f.settled(t, sandbox)
	t.Logf("%d %s: after a tenth %+v, after all %+v", times, what, early, late)
	for process, holds := range late {
		was := early[process]
		assert.LessOrEqual(t, holds.Descriptors, was.Descriptors+slack, "%s: descriptors", process)
		assert.LessOrEqual(t, holds.Goroutines, was.Goroutines+slack, "%s: goroutines", process)
		assert.LessOrEqual(t, holds.Mapped, was.Mapped+slack*8, "%s: mappings", process)
		assert.LessOrEqual(t, holds.MemoryKB, was.MemoryKB+grownKB, "%s: memory", process)
	}
	p.say(t)
	require.NoError(t, p.command.Wait(), "%s", p.log)
	f.leavesNothing(t, before)
}

// What may be more at one moment than at another: connections that a client keeps, and the heap between two
// collections.
const (
	slack = 24
	// calmLooks is how many looks in a row must find nothing lower: a busy machine gives back late.
	calmLooks = 5
	grownKB   = 48 << 10
)

// holdings is what a process holds. Goroutines are known of the facade only.
type holdings struct{ Descriptors, Goroutines, Mapped, MemoryKB int }

// settled looks at the facade and at the envd of a sandbox until both hold less than a moment before no more: what was
// ended has been given back then.
func (f *facade) settled(t *testing.T, sandbox string) map[string]holdings {
	t.Helper()
	now, calm := f.holdings(t, sandbox), 0
	for range 50 {
		time.Sleep(200 * time.Millisecond)
		next, lower := f.holdings(t, sandbox), false
		for process, holds := range next {
			was := now[process]
			lower = lower || holds.Descriptors < was.Descriptors || holds.Goroutines < was.Goroutines || holds.MemoryKB < was.MemoryKB
		}
		now = next
		if calm++; lower {
			calm = 0
		}
		if calm == calmLooks {
			break
		}
	}
	return now
}

func (f *facade) holdings(t *testing.T, sandbox string) map[string]holdings {
	t.Helper()
	facade := holdingsOf(t, f.command.Process.Pid)
	facade.Goroutines = f.metric(t, "go_goroutines")
	found := map[string]holdings{"facade": facade}
	if sandbox == "-" {
		return found
	}
	text, err := os.ReadFile(filepath.Join(f.data, "local", "boxes", sandbox, "box.json"))
	require.NoError(t, err)
	var record struct{ Process struct{ PID int } }
	require.NoError(t, json.Unmarshal(text, &record))
	found["envd"] = holdingsOf(t, record.Process.PID)
	return found
}

// holdingsOf looks at one process.
func holdingsOf(t *testing.T, pid int) holdings {
	t.Helper()
	folder := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(folder + "/status")
	require.NoError(t, err)
	found := regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	memory, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return holdings{Descriptors: len(names(folder + "/fd")), Mapped: len(lines(folder + "/maps")), MemoryKB: memory}
}

// conversation is a client program that says lines and waits for lines.
type conversation struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	log     *bytes.Buffer
}

// converse starts a program of the Python client.
func (f *facade) converse(t *testing.T, args ...string) *conversation {
	t.Helper()
	p := &conversation{command: exec.CommandContext(t.Context(), python(), args...), log: &bytes.Buffer{}}
	p.command.Dir = top("conformance", "sdk", "python")
	p.command.Env = append(append(cleanEnvironment(), f.environment()...), f.told...)
	p.command.Stderr = p.log
	var err error
	p.in, err = p.command.StdinPipe()
	require.NoError(t, err)
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.command.Start())
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// hear is the next line that the program says.
func (p *conversation) hear(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err, "%s", p.log)
	return strings.TrimSpace(line)
}

// say lets the program go on.
func (p *conversation) say(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(p.in, "\n")
	require.NoError(t, err, "%s", p.log)
}

// hangUp ends the program's input.
func (p *conversation) hangUp(t *testing.T) {
	t.Helper()
	require.NoError(t, p.in.Close())
}
