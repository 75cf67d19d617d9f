package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus/isthmus/adapters"
)

// Resume makes a pod of a paused box's image again, whose envd brings back what was kept before it answers. Whatever
// fails, the box stays paused.
func (c *Cluster) Resume(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	pod, err := c.find(ctx, spec.BoxID)
	switch {
	case err == nil && marked(pod): // a pause that was not finished
		if err := c.remove(ctx, pod); err != nil {
			return adapters.Box{}, err
		}
	case err == nil && over(pod):
		return adapters.Box{}, notFound(spec.BoxID)
	case err == nil:
		return describe(pod), c.awake(ctx, pod)
	case adapters.KindOf(err) != adapters.KindNotFound:
		return adapters.Box{}, err
	}
	claim, err := c.claimAlone(ctx, spec.BoxID)
	if err != nil {
		return adapters.Box{}, err
	}
	if !describeClaim(claim).Paused {
		return adapters.Box{}, notFound(spec.BoxID)
	}
	if pod, err = c.wake(ctx, spec, claim); err != nil {
		return adapters.Box{}, err
	}
	return describe(pod), c.awake(ctx, pod)
}

// wake makes the pod. That it could not be made is no word about the box, which is there.
func (c *Cluster) wake(ctx context.Context, spec adapters.Spec, claim *corev1.PersistentVolumeClaim) (*corev1.Pod, error) {
	kept := func(err error) error {
		switch adapters.KindOf(err) {
		case adapters.KindNotFound, adapters.KindExists:
			return adapters.Wrap(adapters.KindUnavailable, err, "the sandbox stays paused: "+err.Error())
		}
		return err
	}
	if err := c.putPolicy(ctx, spec.BoxID, spec.Network); err != nil {
		return nil, err
	}
	pod := c.pod(spec, claim.Annotations[annotationKeptImage])
	mount(pod, claim.Name, true)
	made, err := c.postPod(ctx, pod)
	if err != nil {
		return nil, kept(err)
	}
	now, err := c.started(ctx, made)
	if err == nil && c.delivery == DeliverCopy {
		err = c.carry(ctx, spec.BoxID)
	}
	if err == nil {
		if _, id := imageOf(now); id != claim.Annotations[annotationImageID] {
			err = adapters.Errorf(adapters.KindPrecondition, "the image of the sandbox's template is another one since the pause, and what was "+
				"kept does not fit it: the operator must bring back %s", claim.Annotations[annotationImageID])
		}
	}
	if err != nil {
		return nil, kept(c.undoPod(ctx, made, err))
	}
	return now, nil
}

// awake notes that a box is not paused any more.
func (c *Cluster) awake(ctx context.Context, pod *corev1.Pod) error {
	if claimOf(pod) == "" {
		return nil
	}
	return c.markClaim(ctx, claimOf(pod), nil)
}
