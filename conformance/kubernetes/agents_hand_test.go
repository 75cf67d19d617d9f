package kubernetes

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
)

// byHand plays the controllers, and makes the faults that they are known for: one Sandbox for two claims, Sandboxes that
// are not ready, claims that stay ready when a drain has taken their pod. None becomes a box, and none is left.
func (a *agents) byHand(t *testing.T) {
	p := a.open(t, 0)
	first := a.spec(t, p)
	_, err := p.Create(t.Context(), first)
	require.NoError(t, err)
	a.ready(t, 0)
	bring := hold(t, "agents", "agents")
	defer bring()
	shared := a.given(t, first.BoxID)

	for _, fault := range []struct {
		name, says string
		gate       bool // part of the gate
		hand       func(t *testing.T, claim *unstructured.Unstructured)
	}{
		{"nothing is wrong", "", true, func(t *testing.T, claim *unstructured.Unstructured) {
			a.give(t, claim, a.make(t, claim, nil))
		}},
		{"given twice, as it is said", "is not its own", false, func(t *testing.T, claim *unstructured.Unstructured) {
			a.give(t, claim, shared)
		}},
		{"another claim is said to have it too", "too", false, func(t *testing.T, claim *unstructured.Unstructured) {
			other := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": map[string]any{"generateName": "other-"},
				"spec": map[string]any{"warmPoolRef": map[string]any{"name": "any"}},
			}}
			other, err := a.of(claims).Create(t.Context(), other, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = a.of(claims).Delete(context.Background(), other.GetName(), metav1.DeleteOptions{}) })
			sandbox := a.make(t, claim, nil)
			a.give(t, other, sandbox)
			a.give(t, claim, sandbox)
		}},
		{"its pod is not ready", "not ready", true, func(t *testing.T, claim *unstructured.Unstructured) {
			a.give(t, claim, a.make(t, claim, func(pod *corev1.Pod) {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "isthmus.dev/never"}}
			}))
		}},
		{"a drain has taken its pod", "has no pod", true, func(t *testing.T, claim *unstructured.Unstructured) {
			sandbox := a.make(t, claim, nil)
			require.NoError(t, a.core.Pods(a.namespace).Delete(t.Context(), sandbox, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			a.give(t, claim, sandbox)
		}},
		{"the pod is another Sandbox's", "is not that of its Sandbox", false, func(t *testing.T, claim *unstructured.Unstructured) {
			sandbox := a.make(t, claim, nil)
			a.patch(t, sandboxes, sandbox, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"agents.x-k8s.io/pod-name": shared}}})
			a.give(t, claim, sandbox)
		}},
		{"given twice, by its owner", "is said to have its Sandbox", true, func(t *testing.T, claim *unstructured.Unstructured) {
			a.patch(t, sandboxes, shared, map[string]any{"metadata": map[string]any{"ownerReferences": []any{ownedBy(claim)}}})
			a.give(t, claim, shared)
		}},
	} {
		if os.Getenv("ISTHMUS_TEST") == "soak" && !fault.gate {
			continue
		}
		t.Run(fault.name, func(t *testing.T) {
			spec := a.spec(t, p)
			failed := make(chan error, 1)
			go func() {
				_, err := p.Create(t.Context(), spec)
				failed <- err
			}()
			var claim *unstructured.Unstructured
			require.Eventually(t, func() bool {
				var err error
				claim, err = a.of(claims).Get(t.Context(), spec.BoxID, metav1.GetOptions{})
				return err == nil
			}, time.Minute, 20*time.Millisecond, "no claim was made")
			fault.hand(t, claim)
			err := <-failed
			if fault.says == "" {
				require.NoError(t, err)
				require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
			} else {
				require.Equal(t, adapters.KindUnavailable, adapters.KindOf(err), "%v", err)
				require.ErrorContains(t, err, fault.says)
			}
			require.NotContains(t, a.list(t, claims), spec.BoxID, "the claim was left")
			require.Equal(t, []string{shared}, a.list(t, sandboxes), "a Sandbox was left, or the first box lost its own")
			a.serves(t, p, first)
		})
	}
	require.NoError(t, p.Destroy(t.Context(), first.BoxID))
	require.Empty(t, a.list(t, sandboxes), "a Sandbox was left that its claim did not own any more")
	require.Empty(t, a.pods(t), "pods were left")
}

// serves looks that a box is there and answers.
func (a *agents) serves(t *testing.T, p *adapter.Provider, spec adapters.Spec) {
	t.Helper()
	box, err := p.Get(t.Context(), spec.BoxID)
	require.NoError(t, err)
	require.True(t, box.Alive)
	_, err = adapters.PowersOf(p).Meter.Measure(t.Context(), spec.BoxID)
	require.NoError(t, err)
}

// ownedBy is a reference to an object as controllers write it.
func ownedBy(owner *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}
}

// make makes the Sandbox and the pod of a claim, as its template has it but for a change, says that the Sandbox is ready
// once the pod runs, and returns its name.
func (a *agents) make(t *testing.T, claim *unstructured.Unstructured, change func(*corev1.Pod)) string {
	t.Helper()
	name, _, err := unstructured.NestedString(claim.Object, "spec", "warmPoolRef", "name")
	require.NoError(t, err)
	form, _, err := unstructured.NestedMap(a.get(t, templates, name).Object, "spec", "podTemplate")
	require.NoError(t, err)
	sandbox, err := a.of(sandboxes).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "spec": map[string]any{"podTemplate": form},
		"metadata": map[string]any{"name": claim.GetName(), "ownerReferences": []any{ownedBy(claim)}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(map[string]any{
		"spec": form["spec"], "metadata": map[string]any{"name": claim.GetName(), "ownerReferences": []any{ownedBy(sandbox)}},
	})
	require.NoError(t, err)
	pod := &corev1.Pod{}
	require.NoError(t, json.Unmarshal(text, pod))
	if change != nil {
		change(pod)
	}
	_, err = a.core.Pods(a.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := a.core.Pods(a.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning
	}, time.Minute, 50*time.Millisecond, "the pod does not run")
	a.patch(t, sandboxes, sandbox.GetName(), map[string]any{"status": said()}, "status")
	return sandbox.GetName()
}

// give says that a claim has a Sandbox and is ready.
func (a *agents) give(t *testing.T, claim *unstructured.Unstructured, sandbox string) {
	t.Helper()
	status := said()
	status["sandbox"] = map[string]any{"name": sandbox}
	text, err := json.Marshal(map[string]any{"status": status})
	require.NoError(t, err)
	_, err = a.of(claims).Patch(t.Context(), claim.GetName(), types.MergePatchType, text, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// said is the state of what is ready.
func said() map[string]any {
	return map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "by hand", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}}
}
