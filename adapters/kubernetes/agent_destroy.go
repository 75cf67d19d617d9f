package kubernetes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
)

// relinquish ends a box that has a claim, and returns when the claim, its Sandbox and its pod are gone.
func (c *Cluster) relinquish(ctx context.Context, boxID string) error {
	if !boxIDs.MatchString(boxID) {
		return nil
	}
	one, known := c.follow.of(boxID)
	claim, err := c.agentClaimOf(ctx, boxID)
	if err == nil {
		err = c.dropAgentClaim(ctx, claim, metav1.DeletePropagationForeground)
	}
	if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
		return err
	}
	if known != nil {
		c.forwards.drop(known.Name)
	}
	pod, err := c.find(ctx, boxID)
	switch {
	case err == nil: // its claim did not own it, or went without it
		if err := c.dropAgentSandboxOf(ctx, pod); err != nil {
			return err
		}
		return c.remove(ctx, pod)
	case adapters.KindOf(err) != adapters.KindNotFound:
		return err
	case one != nil:
		return c.gone(ctx, one) // the watch has it too
	}
	return nil
}

// giveBack removes a claim that could not be proven. A Sandbox that it was given goes with it, but not one whose pod is
// another box's: that one stays as it is.
func (c *Cluster) giveBack(ctx context.Context, claim *agentClaim) error {
	with, err := c.sharesPod(ctx, claim)
	if err != nil {
		return err
	}
	if with != "" {
		c.log.Error("the agent-sandbox controller gave a pod to two sandboxes: the second one was not made", "pod", with, "claim", claim.Metadata.Name)
		return c.dropAgentClaim(ctx, claim, metav1.DeletePropagationOrphan)
	}
	return c.relinquish(ctx, claim.Metadata.Labels[labelBox])
}

// sharesPod is the name of the pod that a claim was given although another box is in it; empty: it was not.
func (c *Cluster) sharesPod(ctx context.Context, claim *agentClaim) (string, error) {
	name := claim.Status.Sandbox.Name
	if name == "" {
		return "", nil
	}
	object, err := c.agentsOf(agentSandboxes).Get(ctx, name, metav1.GetOptions{})
	if absent(err) {
		return "", nil
	}
	if err != nil {
		return "", classify(ctx, err, "does not say whether the sandbox's Sandbox is there", false)
	}
	sandbox, err := read[agentSandbox](object)
	if err != nil {
		return "", err
	}
	pod, err := c.core.Pods(c.config.Namespace).Get(ctx, podOf(sandbox), metav1.GetOptions{})
	owner := metav1.GetControllerOf(pod)
	switch {
	case absent(err):
		return "", nil
	case err != nil:
		return "", classify(ctx, err, "does not say whether the sandbox's pod is there", false)
	case owner != nil && owner.UID == sandbox.Metadata.UID && pod.Labels[labelBox] != "" && pod.Labels[labelBox] != claim.Metadata.Labels[labelBox]:
		return pod.Name, nil
	}
	return "", nil
}

// dropAgentClaim deletes this very claim and waits. In the foreground the cluster takes the object away when all that it
// owns is gone. Pods that a node does not end meanwhile are taken off the list.
func (c *Cluster) dropAgentClaim(ctx context.Context, claim *agentClaim, how metav1.DeletionPropagation) error {
	if err := c.dropAgent(ctx, agentClaims, claim.Metadata.Name, claim.Metadata.UID, how); err != nil {
		return err
	}
	patience, box := time.Now().Add(patience), claim.Metadata.Labels[labelBox]
	for {
		now, err := c.agentClaimOf(ctx, claim.Metadata.Name)
		switch {
		case err == nil && now.Metadata.UID != claim.Metadata.UID, err != nil && adapters.KindOf(err) == adapters.KindNotFound:
			return nil
		case err == nil:
			err = c.claimChanges(ctx, now, claimLook)
		case ctx.Err() == nil:
			err = wait(ctx, claimLook)
		}
		if err != nil {
			return err
		}
		if time.Now().After(patience) {
			patience = time.Now().Add(time.Hour)
			if pod, err := c.find(ctx, box); err == nil {
				c.log.Warn("a node does not end a pod: it is taken off the list", "pod", pod.Name, "node", pod.Spec.NodeName)
				if err := c.delete(ctx, pod, pointer(int64(0))); err != nil {
					return err
				}
			}
		}
	}
}

// dropAgent deletes one object, this very one. That it is gone is success.
func (c *Cluster) dropAgent(ctx context.Context, of schema.GroupVersionResource, name string, uid types.UID, how metav1.DeletionPropagation) error {
	err := c.agentsOf(of).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &how})
	if err == nil || absent(err) || kerrors.IsConflict(err) { // a conflict: another object has the name
		return nil
	}
	return classify(ctx, err, "does not remove the sandbox", false)
}

// dropAgentSandboxOf deletes the Sandbox of a pod, which would make the pod again.
func (c *Cluster) dropAgentSandboxOf(ctx context.Context, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if !ofKind(owner, agentGroup, "Sandbox") {
		return nil
	}
	return c.dropAgent(ctx, agentSandboxes, owner.Name, owner.UID, metav1.DeletePropagationBackground)
}
