package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus/isthmus/adapters"
)

// patience is how long a node may take to end a pod before its object is taken away without it.
const patience = 20 * time.Second

// Destroy ends a box and returns when its pod and its volume, or its claim, are gone.
func (c *Cluster) Destroy(ctx context.Context, boxID string) error {
	if c.config.AgentSandbox {
		return c.relinquish(ctx, boxID)
	}
	pod, err := c.find(ctx, boxID)
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		return errors.Join(c.dropClaims(ctx, boxID, ""), c.dropPolicy(ctx, boxID))
	}
	if err != nil {
		return err
	}
	return c.discard(ctx, pod)
}

// discard removes a pod, and all volumes of its box.
func (c *Cluster) discard(ctx context.Context, pod *corev1.Pod) error {
	if err := c.remove(ctx, pod); err != nil {
		return err
	}
	box := pod.Labels[labelBox]
	return errors.Join(c.dropClaims(ctx, box, claimOf(pod)), c.dropPolicy(ctx, box))
}

// remove deletes a pod, and waits: the node takes the object away when the processes have ended. Of a node that
// does not answer nobody can know it; its pod is taken off the list, and the node ends it when it is back.
func (c *Cluster) remove(ctx context.Context, pod *corev1.Pod) error {
	one := c.follow.put(pod)
	if err := c.delete(ctx, pod, nil); err != nil {
		return err
	}
	c.forwards.drop(pod.Name)
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.gone(patient, one)
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.log.Warn("a node does not end a pod: it is taken off the list", "pod", pod.Name, "node", pod.Spec.NodeName)
	if err := c.delete(ctx, pod, pointer(int64(0))); err != nil {
		return err
	}
	return c.gone(ctx, one)
}

// delete deletes this very pod. That it is gone is success.
func (c *Cluster) delete(ctx context.Context, pod *corev1.Pod, grace *int64) error {
	options := metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	err := c.core.Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err == nil || absent(err) || kerrors.IsConflict(err) { // a conflict: another pod has the name
		return nil
	}
	return classify(ctx, err, "does not remove the sandbox", false)
}

// gone waits until the object of a pod is not there any more.
func (c *Cluster) gone(ctx context.Context, one *followed) error {
	for {
		pod, changed := c.follow.state(one)
		select {
		case <-one.gone:
			return nil
		default:
		}
		err := c.heard(ctx, pod, changed)
		if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
