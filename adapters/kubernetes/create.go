package kubernetes

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus/isthmus/adapters"
)

const (
	// callTime bounds one call that must not be cut off, undoTime the removal of a pod that did not start.
	callTime = 30 * time.Second
	undoTime = 40 * time.Second
)

// Create makes a pod and returns when its container runs.
func (c *Cluster) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	pod, err := c.make(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	return describe(pod), nil
}

func (c *Cluster) make(ctx context.Context, spec adapters.Spec) (*corev1.Pod, error) {
	if err := c.admit(ctx, spec); err != nil {
		return nil, err
	}
	image, err := c.image(spec.Template)
	if err != nil {
		return nil, err
	}
	if c.config.AgentSandbox {
		return c.adopt(ctx, spec, image, c.config.Warm[spec.Template.Name])
	}
	made, err := c.post(ctx, spec, image)
	if err != nil {
		return nil, err
	}
	pod, err := c.started(ctx, made)
	if err == nil && c.delivery == DeliverCopy {
		err = c.carry(ctx, spec.BoxID)
	}
	if err != nil {
		return nil, c.undo(ctx, made, err)
	}
	return pod, nil
}

// admit refuses what this pool cannot do, before anything is made.
func (c *Cluster) admit(ctx context.Context, spec adapters.Spec) error {
	r, most := spec.Resources, c.config.Max
	switch {
	case !boxIDs.MatchString(spec.BoxID):
		return adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	case most.CPU > 0 && r.CPU > most.CPU, most.MemoryMB > 0 && r.MemoryMB > most.MemoryMB, most.DiskMB > 0 && r.DiskMB > most.DiskMB:
		return adapters.Errorf(adapters.KindUnsupported, "a sandbox of this pool has at most %d CPUs, %d MiB of memory and %d MiB of disk: ask for less",
			most.CPU, most.MemoryMB, most.DiskMB)
	}
	if err := c.admitAgents(spec); err != nil {
		return err
	}
	if err := c.admitNetwork(spec.Network); err != nil {
		return err
	}
	return ctx.Err()
}

// post makes the objects of a box.
func (c *Cluster) post(ctx context.Context, spec adapters.Spec, image string) (*corev1.Pod, error) {
	if err := c.makeClaim(ctx, spec); err != nil {
		return nil, err
	}
	if !open(spec.Network) {
		if err := c.putPolicy(ctx, spec.BoxID, spec.Network); err != nil {
			return nil, c.unposted(ctx, spec.BoxID, err)
		}
	}
	pod := c.pod(spec, image)
	if c.keeps() {
		mount(pod, spec.BoxID, false)
	}
	made, err := c.postPod(ctx, pod)
	if err != nil {
		return nil, c.unposted(ctx, spec.BoxID, err)
	}
	return made, nil
}

// unposted removes what was made for a pod that was not.
func (c *Cluster) unposted(ctx context.Context, boxID string, cause error) error {
	if kind := adapters.KindOf(cause); kind == adapters.KindUnknownOutcome || kind == adapters.KindExists {
		return cause // there may be a pod, or there is
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if left := errors.Join(c.dropClaims(clean, boxID, ""), c.dropPolicy(clean, boxID)); left != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, errors.Join(cause, left), "the sandbox was not made, and what was made for it could not be removed yet")
	}
	return cause
}

// postPod makes the pod. The call is not cut off with the caller's: an answer tells what is there.
func (c *Cluster) postPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	made, err := c.core.Pods(c.config.Namespace).Create(calling, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, classify(calling, err, "did not make the sandbox", true)
	}
	return made, nil
}

// started waits until the pod's container runs and the pod has an address.
func (c *Cluster) started(ctx context.Context, made *corev1.Pod) (*corev1.Pod, error) {
	one := c.follow.put(made)
	began := time.Now()
	for {
		pod, changed := c.follow.state(one)
		select {
		case <-one.gone:
			return nil, adapters.Errorf(adapters.KindUnavailable, "the sandbox's pod was deleted while it started")
		default:
		}
		ready, err := starting(pod, time.Since(began) > c.config.Schedule)
		if ready || err != nil {
			return pod, err
		}
		if err := c.heard(ctx, pod, changed); err != nil {
			return nil, err
		}
	}
}

// heard returns when something new may be known of a pod. When nothing is heard, the pod is asked for.
func (c *Cluster) heard(ctx context.Context, pod *corev1.Pod, changed <-chan struct{}) error {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	now, err := c.core.Pods(c.config.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case absent(err):
		c.follow.lost(pod.Name, string(pod.UID))
		return notFound(pod.Name)
	case err == nil:
		c.follow.put(now)
	}
	return nil // an API server that is away is waited for, as long as the caller does
}

// hopeless are reasons of a waiting container that do not pass, as the kubelet writes them.
const hopeless = "InvalidImageName ErrImageNeverPull ImagePullBackOff ErrImagePull"

// starting says whether a pod's container runs, or why it will not. late: it has waited for a node long enough.
func starting(pod *corev1.Pod, late bool) (ready bool, err error) {
	if over(pod) {
		return false, adapters.Errorf(adapters.KindUnavailable, "the sandbox ended while it started (%s)", why(pod))
	}
	for _, condition := range pod.Status.Conditions {
		if late && condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return false, adapters.Errorf(adapters.KindCapacity, "no node of the cluster has room for the sandbox: %s", condition.Message)
		}
	}
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		if waits := status.State.Waiting; waits != nil {
			if strings.Contains(hopeless, waits.Reason) && waits.Reason != "" {
				return false, adapters.Errorf(adapters.KindNotFound, "the image of the template cannot be had (%s): the operator must look at the pool's templates", waits.Reason)
			}
			if strings.HasSuffix(waits.Reason, "Error") {
				return false, adapters.Errorf(adapters.KindUnavailable, "the sandbox cannot be started (%s): %s", waits.Reason, waits.Message)
			}
		}
		if status.Name == container && status.State.Running != nil && pod.Status.PodIP != "" {
			return true, nil
		}
	}
	return false, nil
}

// undo removes a box that did not start, so that the error may promise that nothing is left.
func (c *Cluster) undo(ctx context.Context, pod *corev1.Pod, cause error) error {
	return c.undone(ctx, cause, func(clean context.Context) error { return c.discard(clean, pod) })
}

// undoPod removes a pod that did not start, and leaves its volume.
func (c *Cluster) undoPod(ctx context.Context, pod *corev1.Pod, cause error) error {
	return c.undone(ctx, cause, func(clean context.Context) error { return c.remove(clean, pod) })
}

func (c *Cluster) undone(ctx context.Context, cause error, undo func(context.Context) error) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := undo(clean); err != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, errors.Join(cause, err), "the sandbox did not start and could not be removed yet")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cause
}
