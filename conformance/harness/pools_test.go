package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// badPools are pools of this machine of which the first fails 63 of 100 creates, the second hangs, the third limits
// the rate, and the last is good.
func badPools(t *testing.T) string {
	return pools(t, map[string]string{
		"fails":   "rules: [{fault: capacity, share: 0.63}]",
		"hangs":   "rules: [{fault: hang, calls: [create]}]",
		"limited": "rules: [{fault: rate_limited, calls: [create], retryAfter: 60s}]",
	}, "fails", "hangs", "limited")
}

// pools configures pools of this machine that break by plans, and a good one behind them.
func pools(t *testing.T, plans map[string]string, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	lines := "operator: {listen: " + operatorAddress + "}\nlocal: {warm: {}}\npools:\n"
	for i, name := range names {
		plan := filepath.Join(folder, name+".yaml")
		require.NoError(t, os.WriteFile(plan, []byte(plans[name]), 0o644))
		lines += fmt.Sprintf("- {name: %s, provider: local, first_id: %d, create_time: 1s, creates_at_once: %d, fault: %s}\n", name, 1<<30+i<<26, startsAtOnce, plan)
	}
	return lines + "- {name: local, provider: local}\n"
}

// testPools has an unmodified client make sandboxes over pools that fail, each in its own way. The breaker steers: once it
// is open, the first pool is asked by those that were at it, and by the probes of each ten seconds after.
func testPools(t *testing.T) {
	f := newFacade(t, settings{lines: badPools(t)})
	before := f.traces()
	burst := count(t, "ISTHMUS_TEST_SANDBOXES", 100)
	folder := top("conformance", "sdk", "python")
	watching, stop := context.WithCancel(t.Context())
	opened := make(chan opening, 1)
	go func() { opened <- f.awaitOpen(watching, "fails") }()
	out, err := f.program(t.Context(), folder, python(), "pools.py", "burst", strconv.Itoa(burst))
	asked := sum(f.attempts(t), "fails")
	stop()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d sandboxes", burst), strings.TrimSpace(out))
	open := <-opened
	require.NotZero(t, open, "the breaker of a pool that fails opens")
	late, most := asked-open.asked, startsAtOnce+probesAtMost*(1+int(time.Since(open.at)/(10*time.Second)))
	fmt.Printf("%s: of %d creates %d asked the pool that fails, %d of them after its breaker had opened (at most %d)\n", t.Name(), burst, asked, late, most)
	require.LessOrEqual(t, late, most)
	out, err = f.isthmus("pools")
	require.NoError(t, err, out)
	t.Logf("%s\n%s", out, f.attempts(t))
	out, err = f.program(t.Context(), folder, python(), "pools.py", "refusals")
	require.NoError(t, err, out)
	f.leavesNothing(t, before)
	f.poolsAreEmpty(t)
}

const (
	// startsAtOnce is how many creates a bad pool of the test makes at a time.
	startsAtOnce = 4
	// probesAtMost is how many creates a breaker that is half open lets through until it is open again, where two
	// successes close it before. It is chance, and this is far off.
	probesAtMost = 20
)

// opening is when a breaker was seen open, and how many creates its pool had been asked for by then.
type opening struct {
	at    time.Time
	asked int
}

// awaitOpen waits until the breaker of a pool is open; zero: ctx ended first.
func (f *facade) awaitOpen(ctx context.Context, pool string) opening {
	for ctx.Err() == nil {
		text, err := f.figures()
		if err == nil && strings.Contains(text, fmt.Sprintf("isthmus_pool_breaker{pool=%q} 2\n", pool)) {
			return opening{time.Now(), sum(text, pool)}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return opening{}
}

// sum adds up the attempts at which a pool was asked.
func sum(text, pool string) (asked int) {
	for _, found := range regexp.MustCompile(`(?m)^isthmus_pool_attempts_total\{pool="`+pool+`",outcome="([a-z_]+)"\} ([0-9]+)$`).FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(found[2]); err == nil && found[1] != "not_tried" {
			asked += n
		}
	}
	return asked
}

// figures are what the operator is shown.
func (f *facade) figures() (string, error) {
	response, err := f.client().Get("http://" + operatorAddress + "/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// attempts are the operator's figures of attempts by pool.
func (f *facade) attempts(t *testing.T) string {
	t.Helper()
	text, err := f.figures()
	require.NoError(t, err)
	return strings.Join(regexp.MustCompile(`(?m)^isthmus_pool_attempts_total\{.*$`).FindAllString(text, -1), "\n")
}

// testPoolCrashes kills the facade at random moments while creates fail over: afterwards every sandbox that a client was
// given is there, every sandbox has one box, and no box is without a sandbox.
func testPoolCrashes(t *testing.T, crashes int) {
	f := newFacade(t, settings{lines: pools(t, map[string]string{
		"loses": "rules: [{fault: lost_answer, share: 0.5}, {fault: capacity, share: 0.3}]",
		"slow":  "rules: [{fault: slow, share: 0.5, delay: 50ms}, {fault: capacity, share: 0.5}]",
	}, "loses", "slow")})
	before := f.traces()
	const together = 4
	answered := make(chan string, together*crashes)
	for range crashes {
		var creates sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		for range together {
			creates.Go(func() { f.createAnyhow(ctx, answered) })
		}
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the moment is what is tried
		f.kill()
		creates.Wait()
		cancel()
		f.start()
	}
	close(answered)
	given := map[string]bool{}
	for id := range answered {
		given[id] = true
	}
	var there map[string]bool
	require.Eventually(t, func() (paired bool) {
		there, paired = f.paired(t)
		return paired
	}, 2*time.Minute, 500*time.Millisecond)
	t.Logf("%d crashes, %d creates: %d were answered with a sandbox, %d sandboxes are there", crashes, together*crashes, len(given), len(there))
	for id := range given {
		require.True(t, there[id], "sandbox %s was given to a client and is lost", id)
	}
	out, err := f.isthmus("sandboxes", "kill", "--all")
	require.NoError(t, err, out)
	f.leavesNothing(t, before)
	f.poolsAreEmpty(t)
}

// createAnyhow asks for a sandbox of a facade that may die under it, and tells the id of one that it was given.
func (f *facade) createAnyhow(ctx context.Context, answered chan<- string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v2/sandboxes", strings.NewReader(`{"templateID":"base","timeout":3600}`))
	if err != nil {
		return
	}
	request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
	response, err := f.client().Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	var made struct {
		SandboxID string `json:"sandboxID"`
	}
	if err := json.NewDecoder(response.Body).Decode(&made); err == nil && response.StatusCode == http.StatusCreated {
		answered <- made.SandboxID
	}
}

// boxes are the folders of boxes in all pools, by box id: each should be there once.
func (f *facade) boxes(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, pattern := range []string{filepath.Join(f.data, "local", "boxes", "*"), filepath.Join(f.data, "pools", "*", "local", "boxes", "*")} {
		folders, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, folder := range folders {
			found[filepath.Base(folder)]++
		}
	}
	return found
}

// paired reports whether every running sandbox has one box, and every box its sandbox, and which sandboxes there are.
func (f *facade) paired(t *testing.T) (there map[string]bool, paired bool) {
	t.Helper()
	out, err := f.isthmus("sandboxes", "list")
	require.NoError(t, err, out)
	boxes, there := f.boxes(t), map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		fields := strings.Fields(line)
		if fields[1] != "running" || boxes[fields[0]] != 1 {
			return nil, false
		}
		there[fields[0]] = true
	}
	return there, len(there) == len(boxes)
}

// poolsAreEmpty looks that no pool has a box left.
func (f *facade) poolsAreEmpty(t *testing.T) {
	t.Helper()
	require.Empty(t, f.boxes(t))
}
