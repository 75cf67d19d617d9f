package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
)

// prove returns the pod of a claim when nothing speaks against it: by UID the pod is the Sandbox's and the Sandbox the
// claim's, no other claim is said to have it, no other box is in it, all three say that they are ready, and none is
// about to go. doubt says what is missing, which may come. late: it has waited for a node long enough.
//
// The states themselves prove little: controllers of that project have given one Sandbox to two claims, have adopted
// Sandboxes that were not ready, and have left claims ready whose pod a drain had taken.
func (c *Cluster) prove(ctx context.Context, claim *agentClaim, late bool) (_ *corev1.Pod, doubt string, _ error) {
	name := claim.Status.Sandbox.Name
	if name == "" {
		return nil, "it has no Sandbox yet", nil
	}
	sandbox, doubt, err := c.proveSandbox(ctx, claim, name)
	if err != nil || doubt != "" {
		return nil, doubt, err
	}
	pod, err := c.core.Pods(c.config.Namespace).Get(ctx, podOf(sandbox), metav1.GetOptions{})
	if absent(err) {
		return nil, "its Sandbox " + name + " has no pod", nil
	}
	if err != nil {
		return nil, "", classify(ctx, err, "does not say whether the sandbox's pod is there", false)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != sandbox.Metadata.UID {
		return nil, "the pod " + pod.Name + " is not that of its Sandbox", nil
	}
	if other := pod.Labels[labelBox]; other != "" && other != claim.Metadata.Labels[labelBox] {
		return nil, "", adapters.Errorf(adapters.KindUnavailable, "the cluster's agent-sandbox controller gave the sandbox a pod that another sandbox has: "+
			"it was given back, try again")
	}
	if pod.DeletionTimestamp != nil { // a drain; another pod may come in its place
		return nil, "its pod is about to go", nil
	}
	runs, err := starting(pod, late)
	switch {
	case err != nil:
		return nil, "", err
	case !runs || !podReady(pod):
		return nil, "its pod is not ready", nil
	case condition(sandbox.Status.Conditions, "Ready").Status != metav1.ConditionTrue:
		return nil, "its Sandbox is not ready", nil
	case condition(claim.Status.Conditions, "Ready").Status != metav1.ConditionTrue:
		return nil, "it is not ready", nil
	}
	return pod, "", nil
}

// proveSandbox returns the Sandbox of a claim when it is this claim's alone.
func (c *Cluster) proveSandbox(ctx context.Context, claim *agentClaim, name string) (_ *agentSandbox, doubt string, _ error) {
	object, err := c.agentsOf(agentSandboxes).Get(ctx, name, metav1.GetOptions{})
	if absent(err) {
		return nil, "there is no Sandbox " + name, nil
	}
	if err != nil {
		return nil, "", classify(ctx, err, "does not say whether the sandbox's Sandbox is there", false)
	}
	sandbox, err := read[agentSandbox](object)
	if err != nil {
		return nil, "", err
	}
	owner := metav1.GetControllerOf(&sandbox.Metadata)
	switch {
	case owner == nil || owner.UID != claim.Metadata.UID || !ofKind(owner, claimGroup, "SandboxClaim"):
		return nil, "the Sandbox " + name + " is not its own", nil
	case sandbox.Metadata.DeletionTimestamp != nil:
		return nil, "its Sandbox is about to go", nil
	}
	others, err := c.agentClaimsOf(ctx, "")
	if err != nil {
		return nil, "", err
	}
	for _, other := range others {
		if other.Metadata.UID != claim.Metadata.UID && other.Status.Sandbox.Name == name && other.Metadata.DeletionTimestamp == nil {
			return nil, fmt.Sprintf("the claim %s is said to have its Sandbox %s too", other.Metadata.Name, name), nil
		}
	}
	return sandbox, "", nil
}

// podOf is the name of a Sandbox's pod.
func podOf(sandbox *agentSandbox) string {
	return cmp.Or(sandbox.Metadata.Annotations[agentPodName], sandbox.Metadata.Name)
}

// markAdopted makes a pod that of a box by a patch that holds only for the version that was seen, so that of two claims
// one gets it; nil: it changed meanwhile.
func (c *Cluster) markAdopted(ctx context.Context, pod *corev1.Pod, spec adapters.Spec) (*corev1.Pod, error) {
	marks, notes := c.marks(spec)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": marks, "annotations": notes,
	}})
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the mark of a pod cannot be written")
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	marked, err := c.core.Pods(pod.Namespace).Patch(calling, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if kerrors.IsConflict(err) || absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(calling, err, "does not say whether the sandbox's pod was marked", true)
	}
	c.follow.put(marked)
	return marked, nil
}

// unmark takes the mark of a pod back that did not become a box. A pod that goes with its claim needs none.
func (c *Cluster) unmark(ctx context.Context, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	none := map[string]any{labelManaged: nil, labelDeployment: nil, labelBox: nil, labelSandbox: nil, labelTeam: nil}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": none}})
	if err != nil {
		return
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err = c.core.Pods(pod.Namespace).Patch(calling, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !absent(err) && !kerrors.IsConflict(err) {
		c.log.Warn("the mark of a pod that did not become a sandbox stays until its claim is gone", "pod", pod.Name, "err", err)
	}
	c.follow.lost(pod.Name, string(pod.UID))
}
