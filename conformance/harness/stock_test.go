package harness

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const operatorAddress = "127.0.0.1:3001"

// testStock creates sandboxes out of what was made ahead, kills the facade between, and stops it at last.
func testStock(t *testing.T) {
	f := newFacade(t, settings{lines: "operator: {listen: " + operatorAddress + "}\n", flags: []string{"--kill-on-exit"}})
	before := f.traces()
	f.stocked(t, 2)
	for range 4 {
		f.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, http.StatusCreated, nil)
		f.stocked(t, 2)
	}
	require.Equal(t, 4, f.metric(t, "isthmus_stock_claims_total"))
	f.kill()
	f.start()
	f.stocked(t, 2)
	f.call("POST", "/v2/sandboxes", `{"templateID":"base"}`, http.StatusCreated, nil)
	require.Equal(t, 1, f.metric(t, "isthmus_stock_claims_total"), "what a killed facade left in stock serves")
	require.Equal(t, 5, f.metric(t, "isthmus_sandboxes_running"))
	f.leavesNothing(t, before) // the stop ends the five, too
}

// stocked waits until so many boxes are ready.
func (f *facade) stocked(t *testing.T, boxes int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.metric(t, "isthmus_stock_ready") == boxes }, time.Minute, 20*time.Millisecond)
}

// metric is a number that the operator is shown.
func (f *facade) metric(t *testing.T, name string) int {
	t.Helper()
	text, err := f.figures()
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{.*\})? ([0-9]+)$`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	number, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return number
}
