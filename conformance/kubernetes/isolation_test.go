package kubernetes

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testIsolation asks for a floor of isolation: a pool of gVisor, where that was seen from inside, serves it; a pool of
// plain containers does not.
func testIsolation(t *testing.T, c *cluster) {
	const floor = `,"metadata":{"isthmus:isolation":"gvisor"}`
	plain := newFacade(t, access(t))
	status, text := plain.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base"`+floor+`}`, nil)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "isolation")
	require.Eventually(t, func() bool { return len(plain.cluster.pods(t)) == 0 }, time.Minute, 100*time.Millisecond, "a pod was made")

	strong := newFacade(t, c, "runtime_class: gvisor", "pool isolation: gvisor")
	strong.runs(strong.create(floor))
	pods := c.pods(t)
	require.Len(t, pods, 1)
	require.Equal(t, "gvisor", *pods[0].Spec.RuntimeClassName)
	status, text = strong.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","metadata":{"isthmus:isolation":"microvm"}}`, nil)
	require.Equal(t, http.StatusBadRequest, status, text)
}
