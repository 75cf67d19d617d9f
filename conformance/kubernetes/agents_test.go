package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/conformance/provider"
)

// testAgents uses a pool whose boxes are claims of agent-sandbox, with that project's own controllers in the cluster.
func testAgents(t *testing.T, c *cluster) {
	a := newAgents(t, c)
	if os.Getenv("ISTHMUS_TEST") == "soak" {
		fmt.Println("not in the gate, but in make test-kubernetes: of agent-sandbox the provider suite, changed templates, a facade, lost pods, most faults")
	} else {
		t.Run("the provider suite", a.suite)
		t.Run("a template changes", a.changes)
		t.Run("a facade", a.facade)
		t.Run("its pod is taken", a.taken)
	}
	t.Run("ahead and not", a.ahead)
	t.Run("by hand", a.byHand)
	a.empty(t)
}

// suite runs the provider suite with boxes of which some were made ahead.
func (a *agents) suite(t *testing.T) {
	p, err := adapter.Open(t.Context(), a.config(2))
	require.NoError(t, err)
	t.Logf("%+v", p.Findings())
	require.Len(t, p.Findings().Agents, 4)
	suite, err := provider.Open(t.Context(), provider.Harness{
		Provider: p, Secrets: secrets, AtOnce: 4, Soon: 12 * time.Second, Patience: time.Minute,
		Reopen: func() (adapters.Provider, error) { return adapter.Open(t.Context(), a.config(2)) },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, suite.Close(context.WithoutCancel(t.Context()))) }()
	for _, one := range suite.Cases() {
		t.Run(one.Name, func(t *testing.T) { one.Run(t, suite) })
	}
}

// ahead takes one box that was made ahead, and one that was not: by UID the claim, the Sandbox and the pod belong together.
func (a *agents) ahead(t *testing.T) {
	p := a.open(t, 1)
	a.ready(t, 1)
	for _, ahead := range []bool{true, false} {
		if !ahead {
			a.keep(t, 0)
		}
		spec := a.spec(t, p)
		began := time.Now()
		box, err := p.Create(t.Context(), spec)
		require.NoError(t, err)
		t.Logf("made ahead %v: %v", ahead, time.Since(began).Round(time.Millisecond))
		require.True(t, box.Alive)
		claim := a.get(t, claims, spec.BoxID)
		sandbox := a.get(t, sandboxes, a.given(t, spec.BoxID))
		pod := a.podOf(t, spec.BoxID)
		require.Equal(t, claim.GetUID(), metav1.GetControllerOf(sandbox).UID)
		require.Equal(t, sandbox.GetUID(), metav1.GetControllerOf(pod).UID)
		require.Equal(t, string(pod.UID), claim.GetAnnotations()["isthmus.dev/pod"])
		require.Equal(t, ahead, pod.Name != spec.BoxID, "the pod is %s", pod.Name)
		require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
		require.Empty(t, a.list(t, claims), "claims were left")
		_, err = a.core.Pods(a.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.Error(t, err, "the pod is still there")
	}
	for name, change := range map[string]func(*adapters.Spec){
		"sizes": func(s *adapters.Spec) { s.Resources.CPU = 2 }, "network": func(s *adapters.Spec) { s.Network.Internet = false },
	} {
		spec := a.spec(t, p)
		change(&spec)
		_, err := p.Create(t.Context(), spec)
		require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err), "%s: %v", name, err)
	}
}

// taken takes the pod of a box as a drain does. The controllers make another in its place, which is nobody's box.
func (a *agents) taken(t *testing.T) {
	p := a.open(t, 0)
	spec := a.spec(t, p)
	_, err := p.Create(t.Context(), spec)
	require.NoError(t, err)
	ended, err := adapters.PowersOf(p).Watcher.Ended(spec.BoxID)
	require.NoError(t, err)
	first := a.podOf(t, spec.BoxID)
	require.NoError(t, a.core.Pods(a.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first.Name}}))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		require.Fail(t, "nobody was told of the end")
	}
	require.Eventually(t, func() bool {
		next, err := a.core.Pods(a.namespace).Get(t.Context(), first.Name, metav1.GetOptions{})
		return err == nil && next.UID != first.UID
	}, time.Minute, 50*time.Millisecond, "the controllers make no other pod")
	require.Eventually(t, func() bool {
		box, err := p.Get(t.Context(), spec.BoxID)
		return err == nil && !box.Alive
	}, time.Minute, 50*time.Millisecond, "the pod that was made in its place is taken for it")
	_, err = p.Reach(t.Context(), spec.BoxID)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err), "%v", err)
	boxes, err := p.List(t.Context(), spec.Deployment)
	require.NoError(t, err)
	require.Len(t, boxes, 1)
	require.False(t, boxes[0].Alive)
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
	require.Empty(t, a.list(t, claims), "claims were left")
	require.Empty(t, a.pods(t), "pods were left")
}

// changes makes boxes while their template changes, so that the pods that were made ahead are taken away. Each create
// gives a box that serves, or an error that says to try again.
func (a *agents) changes(t *testing.T) {
	p := a.open(t, 3)
	a.ready(t, 3)
	name := a.list(t, templates)[0]
	for round := range 4 {
		var work sync.WaitGroup
		specs := []adapters.Spec{a.spec(t, p), a.spec(t, p), a.spec(t, p), a.spec(t, p)}
		errs := make([]error, len(specs))
		for i := range specs {
			work.Go(func() { _, errs[i] = p.Create(t.Context(), specs[i]) })
		}
		patch := fmt.Sprintf(`[{"op":"add","path":"/spec/podTemplate/spec/containers/0/env","value":[{"name":"ROUND","value":"%d"}]}]`, round)
		_, err := a.of(templates).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
		work.Wait()
		for i, spec := range specs {
			if errs[i] != nil {
				t.Logf("round %d: %v", round, errs[i])
				require.Equal(t, adapters.KindUnavailable, adapters.KindOf(errs[i]), "%v", errs[i])
				continue
			}
			pod := a.podOf(t, spec.BoxID)
			require.Equal(t, a.get(t, sandboxes, a.given(t, spec.BoxID)).GetUID(), metav1.GetControllerOf(pod).UID)
			_, err := adapters.PowersOf(p).Meter.Measure(t.Context(), spec.BoxID)
			require.NoError(t, err, "a box does not serve")
			require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
		}
		require.Empty(t, a.list(t, claims), "claims were left")
	}
}

// facade serves such a pool through Isthmus itself, and evicts one of its pods.
func (a *agents) facade(t *testing.T) {
	f := newFacade(t, access(t), "agent_sandbox: true", "warm: {base: 1}", "default: {cpu: 1, memory_mb: 256, disk_mb: 512}")
	require.Contains(t, f.log.String(), "sandboxclaims.extensions.agents.x-k8s.io/v1beta1")
	out, err := f.isthmus("doctor")
	require.NoError(t, err, out)
	require.Contains(t, out, "sandboxclaims.extensions.agents.x-k8s.io/v1beta1")
	id := f.create()
	f.runs(id)
	var pod corev1.Pod
	for _, one := range f.cluster.pods(t) {
		if one.Labels["isthmus.dev/sandbox"] != "" {
			pod = one
		}
	}
	require.NoError(t, f.cluster.core.Pods(f.cluster.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}))
	f.gone(id, "Eviction", time.Minute)
	status, text := f.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false}`, nil)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Eventually(t, func() bool {
		for _, one := range f.cluster.pods(t) {
			if strings.HasPrefix(one.Name, id) || one.Labels["isthmus.dev/sandbox"] != "" {
				return false
			}
		}
		return true
	}, time.Minute, 100*time.Millisecond, "pods were left")
}
