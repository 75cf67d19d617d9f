package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

var _ bootstrap.Shelf = (*Cluster)(nil)

// fit says what a pod can serve, whoever claims it.
func fit(spec adapters.Spec) string {
	text, err := json.Marshal([]any{spec.Template.ID, spec.Template.Version, spec.Resources, spec.Network})
	if err != nil {
		return "" // nothing fits
	}
	return string(text)
}

// Stock makes a pod ahead.
func (c *Cluster) Stock(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	return c.Create(ctx, spec)
}

// Take gives a stocked pod that fits the box id, by a patch that holds only for the version that was seen: of two
// facades, or two creates, one gets it.
func (c *Cluster) Take(ctx context.Context, spec adapters.Spec) (adapters.Box, string, error) {
	if !boxIDs.MatchString(spec.BoxID) {
		return adapters.Box{}, "", adapters.Errorf(adapters.KindInvalid, "a box id has 1 to 40 characters of a-z and 0-9")
	}
	wanted := fit(spec)
	for _, pod := range c.stocked() {
		if pod.Labels[labelDeployment] != value(spec.Deployment) || pod.Annotations[annotationFit] != wanted || wanted == "" {
			continue
		}
		taken, err := c.take(ctx, pod, spec)
		if err != nil {
			return adapters.Box{}, "", err
		}
		if taken != nil {
			return describe(taken), pod.Name, nil
		}
	}
	return adapters.Box{}, "", adapters.Errorf(adapters.KindNotFound, "no sandbox that was made ahead fits")
}

// stocked are the pods that wait to be claimed, the oldest first.
func (c *Cluster) stocked() []*corev1.Pod {
	all := slices.DeleteFunc(c.follow.all(), func(pod *corev1.Pod) bool {
		ready, err := starting(pod, false)
		return pod.Labels[labelSandbox] != "" || !ready || err != nil
	})
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all
}

// take claims one pod; nil: somebody else was faster.
func (c *Cluster) take(ctx context.Context, pod *corev1.Pod, spec adapters.Spec) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": pod.ResourceVersion,
		"labels":          map[string]string{labelBox: spec.BoxID, labelSandbox: spec.Envd.SandboxID, labelTeam: value(spec.TeamID)},
		"annotations":     map[string]string{annotationAttempt: spec.Attempt, annotationDeadline: stamp(spec.Envd.Deadline)},
	}})
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the claim cannot be written")
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	taken, err := c.core.Pods(pod.Namespace).Patch(calling, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case kerrors.IsConflict(err), absent(err):
		return nil, nil
	case err != nil:
		return nil, classify(calling, err, "does not say whether the sandbox was claimed", true)
	}
	c.follow.put(taken)
	return taken, nil
}

// Unstock removes a pod that nobody claimed: the delete holds only for the version that was seen.
func (c *Cluster) Unstock(ctx context.Context, boxID string) error {
	for {
		pod, err := c.find(ctx, boxID)
		if err != nil {
			return err
		}
		if pod.Labels[labelSandbox] != "" || over(pod) {
			return notFound(boxID)
		}
		seen := metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
		err = c.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &seen})
		if kerrors.IsConflict(err) {
			continue // it changed: look again whether it was claimed
		}
		if err != nil {
			return classify(ctx, err, "does not remove the sandbox that was made ahead", false)
		}
		return c.discard(ctx, pod)
	}
}
