package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/conformance/wire"
)

// listed is one case of a part.
type listed struct {
	name string
	run  func(*testing.T)
}

// TestConformance runs the cases of one part.
func TestConformance(t *testing.T) {
	parts := map[string][]listed{
		"main": {
			{"wire", testWire},
			{"python", testPython},
			{"javascript", testJavaScript},
			{"powers", testPowers},
			{"a crash of the facade", func(t *testing.T) { testCrash(t, settings{}) }},
			{"boxes that are made ahead", testStock},
			{"pools that fail", testPools},
			{"crashes while creates fail over", func(t *testing.T) { testPoolCrashes(t, 5) }},
			{"crashes while sandboxes are paused", func(t *testing.T) { testPowerCrashes(t, 3) }},
			{"two programs at once", func(t *testing.T) { testTwoPrograms(t, count(t, "ISTHMUS_TEST_SANDBOXES", 8)) }},
			{"an ordinary user", testOrdinary},
			{"limits of a team", func(t *testing.T) { testLimits(t, "team", "limits:\n  team_concurrency: 2\n") }},
			{"limits of the machine", func(t *testing.T) { testLimits(t, "machine", "limits:\n  max_sandboxes: 2\n") }},
			{"the command", testCommand},
		},
		"clients": {
			{"old clients", testOldClients},
			{"python by host name", func(t *testing.T) { runPython(t, newFacade(t, settings{domain: true})) }},
			{"javascript by host name", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{domain: true})) }},
			{"python through two Isthmuses", func(t *testing.T) { runPython(t, newFacade(t, settings{nested: true})) }},
			{"javascript through two Isthmuses", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{nested: true})) }},
		},
		"soak": {
			{"a facade that is killed under twenty clients", func(t *testing.T) { testChurn(t, count(t, "ISTHMUS_TEST_KILLS", 20)) }},
			{"a full table of processes", testFullTable},
			{"watches leave nothing", func(t *testing.T) { testLeaks(t, "watches", count(t, "ISTHMUS_TEST_WATCHES", 500)) }},
			{"commands leave nothing", func(t *testing.T) { testLeaks(t, "commands", count(t, "ISTHMUS_TEST_COMMANDS", 1000)) }},
			{"sandboxes leave nothing", func(t *testing.T) { testLeaks(t, "sandboxes", count(t, "ISTHMUS_TEST_MADE", 100)) }},
			{"attacks", func(t *testing.T) { testAttacks(t, settings{}) }},
			{"attacks on an ordinary user", func(t *testing.T) { testAttacks(t, settings{ordinary: true, delegated: true}) }},
			{"python under gVisor", testGVisorPython},
			{"a pool under gVisor beside another", testGVisorPool},
			{"a crash of the facade under gVisor", func(t *testing.T) { testCrash(t, underGVisor()) }},
			{"javascript under gVisor", func(t *testing.T) { runJavaScript(t, newFacade(t, underGVisor())) }},
			{"two programs at once", func(t *testing.T) { testTwoPrograms(t, count(t, "ISTHMUS_TEST_SANDBOXES", 50)) }},
			{"many crashes of the facade", testManyCrashes},
			{"many crashes while sandboxes are paused", func(t *testing.T) { testPowerCrashes(t, 15) }},
			{"many crashes while creates fail over", func(t *testing.T) { testPoolCrashes(t, count(t, "ISTHMUS_TEST_CRASHES", 40)) }},
		},
	}
	parts["bare"] = bareCases()
	parts["soak"] = append(parts["soak"], someBareCases()...)
	parts["vercel"], parts["daytona"], parts["modal"] = vercelCases(), daytonaCases(), modalCases()
	parts["everywhere"] = everywhereCases()
	parts["clients"] = slices.Concat(parts["clients"], parts["vercel"], parts["daytona"], parts["modal"], parts["everywhere"])
	require.Contains(t, parts, part(), "ISTHMUS_TEST names no part")
	for _, c := range parts[part()] {
		t.Run(c.name, c.run)
	}
}

// part is which part of the cases is run.
func part() string { return cmp.Or(os.Getenv("ISTHMUS_TEST"), "main") }

// count is how often or how many, chosen by an environment variable, and printed, because a soak of the gate counts
// less than a proof.
func count(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	n := otherwise
	if chosen := os.Getenv(variable); chosen != "" {
		var err error
		n, err = strconv.Atoi(chosen)
		require.NoError(t, err, variable)
	}
	fmt.Printf("%s: %s=%d\n", t.Name(), variable, n)
	return n
}

func testWire(t *testing.T) {
	f := newFacade(t, settings{})
	s, err := wire.Open(t.Context(), wire.Target{APIURL: f.url, APIKey: key})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	for _, c := range wire.Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, s) })
	}
}

// testOrdinary runs what depends on how sandboxes are made once more, under an ordinary user's facade.
func testOrdinary(t *testing.T) {
	f := newFacade(t, settings{ordinary: true})
	suite(t, f, top("conformance", "sdk", "python"), python(), "-m", "pytest", "-q", "--color=no",
		"tests/test_sandbox.py", "tests/test_commands.py", "tests/test_files.py", "tests/test_network.py", "tests/test_packages.py", "tests/test_ports.py")
}

// testLimits shows both clients a facade that has room for two sandboxes.
func testLimits(t *testing.T, kind, lines string) {
	f := newFacade(t, settings{lines: lines, told: []string{"ISTHMUS_TEST_LIMIT=" + kind}})
	suite(t, f, top("conformance", "sdk", "python"), python(), "-m", "pytest", "-q", "--color=no", "limits")
	suite(t, f, top("conformance", "sdk", "js"), "node", "--test", "--test-reporter=spec", "limits/")
}

// testCommand runs the wire suite as anybody can, against any URL, and looks that a second server on the same data folder
// does not start.
func testCommand(t *testing.T) {
	f := newFacade(t, settings{})
	said, err := exec.CommandContext(t.Context(), f.binary, "serve", "--config", f.config, "--listen", "127.0.0.1:0", "--no-build").CombinedOutput()
	require.Error(t, err, "%s", said)
	require.Contains(t, string(said), "another isthmus has the data folder "+f.data+" open")
	out, err := exec.Command(f.binary, "conformance", "--url", f.url, "--api-key", key, "--only", "control plane/").CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	assert.Regexp(t, "^[1-9][0-9]* passed, 0 failed$", lines[len(lines)-1])
	for _, line := range lines[:len(lines)-1] {
		assert.Regexp(t, "^PASS control plane/", line)
	}
}

func testPython(t *testing.T)     { runPython(t, newFacade(t, settings{})) }
func testJavaScript(t *testing.T) { runJavaScript(t, newFacade(t, settings{})) }

// runPython runs the suite of the Python client, sync and async, and looks what it left.
func runPython(t *testing.T, f *facade) {
	t.Helper()
	suite(t, f, top("conformance", "sdk", "python"), python(), "-m", "pytest", "-q", "--color=no", "--durations=5")
}

// runJavaScript runs the suite of the JavaScript client.
func runJavaScript(t *testing.T, f *facade) {
	t.Helper()
	suite(t, f, top("conformance", "sdk", "js"), "node", "--test", "--test-reporter=spec", "--test-concurrency=2", "tests/")
}

// suite runs one client's suite, and looks what is left.
func suite(t *testing.T, f *facade, folder, name string, args ...string) {
	t.Helper()
	before := f.traces()
	started := time.Now()
	out, err := f.program(t.Context(), folder, name, args...)
	t.Logf("took %v\n%s", time.Since(started).Round(time.Second), out)
	require.NoError(t, err)
	f.leavesNothing(t, before)
}

// hostServer answers on every address of the host, at port 8099: a sandbox that is refused there is refused by
// Isthmus, and not by nobody being there.
func hostServer(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", ":8099")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("this is the host\n"))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// testTwoPrograms has a Python and a JavaScript program make, use and kill so many sandboxes each, at once.
func testTwoPrograms(t *testing.T, count int) {
	f := newFacade(t, settings{})
	before := f.traces()
	t.Logf("%d sandboxes in each of two programs", count)
	programs, ctx := errgroup.WithContext(t.Context())
	for _, program := range [][]string{
		{top("conformance", "sdk", "python"), python(), "program.py"},
		{top("conformance", "sdk", "js"), "node", "program.js"},
	} {
		programs.Go(func() error {
			out, err := f.program(ctx, program[0], program[1], program[2], strconv.Itoa(count))
			t.Logf("%s: %s", program[2], out)
			if err == nil && !strings.Contains(out, fmt.Sprintf("%d sandboxes", count)) {
				err = fmt.Errorf("%s did not say that it is done: %s", program[2], out)
			}
			return err
		})
	}
	require.NoError(t, programs.Wait())
	f.leavesNothing(t, before)
}

// testCrash kills the facade while a command runs: the command goes on, and a client comes back to it.
func testCrash(t *testing.T, s settings) {
	f := newFacade(t, s)
	before := f.traces()
	crash(t, f)
	f.leavesNothing(t, before)
}

// testManyCrashes does it again and again on one data folder.
func testManyCrashes(t *testing.T) {
	f := newFacade(t, settings{})
	before := f.traces()
	for range 10 {
		crash(t, f)
	}
	f.leavesNothing(t, before)
}

// crash starts a command through one facade and gets its end through the next.
func crash(t *testing.T, f *facade) {
	t.Helper()
	folder := top("conformance", "sdk", "python")
	out, err := f.program(t.Context(), folder, python(), "reattach.py", "start")
	require.NoError(t, err)
	var started struct {
		Sandbox string `json:"sandbox"`
		PID     int    `json:"pid"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &started), out)
	f.kill()
	f.start()
	out, err = f.program(t.Context(), folder, python(), "reattach.py", "finish", started.Sandbox, strconv.Itoa(started.PID))
	require.NoError(t, err)
	assert.Equal(t, "exit 42, said 'went on'", strings.TrimSpace(out))
}
