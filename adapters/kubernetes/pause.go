package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

var _ adapters.Pauser = (*Cluster)(nil)

// thawTime bounds the call that lets programs go on whose pause came to nothing.
const thawTime = 10 * time.Second

// Pause stops the programs of a box, keeps what they changed in its root file system on its volume, and ends its pod.
// The volume is marked before the pod, and the pod before it is ended: whoever looks finds a box that runs, or all that
// a resume needs.
func (c *Cluster) Pause(ctx context.Context, boxID string, level adapters.Level) error {
	if level != adapters.LevelFilesystem {
		return adapters.Errorf(adapters.KindUnsupported, "a cluster keeps the files of a paused sandbox and not its memory: pause without memory")
	}
	pod, err := c.find(ctx, boxID)
	switch {
	case err != nil && adapters.KindOf(err) == adapters.KindNotFound:
		return c.isPaused(ctx, boxID)
	case err != nil:
		return err
	case !marked(pod) && (over(pod) || pod.Labels[labelSandbox] == ""):
		return notFound(boxID)
	case claimOf(pod) == "":
		return adapters.Errorf(adapters.KindUnsupported, "the sandbox %s was made without a volume and cannot be paused: make another", boxID)
	case !marked(pod):
		if pod, err = c.keep(ctx, pod); err != nil {
			return err
		}
	}
	if err := c.remove(ctx, pod); err != nil {
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "the sandbox was kept, but its pod has not ended yet: look at it, and pause it again")
	}
	return nil
}

// isPaused is success where nothing but the volume of a paused box is there.
func (c *Cluster) isPaused(ctx context.Context, boxID string) error {
	claim, err := c.claimAlone(ctx, boxID)
	if err == nil && !describeClaim(claim).Paused {
		return notFound(boxID)
	}
	return err
}

// keep brings a box's files to its volume and marks both; its programs stand still then. The pod that is returned bears
// the mark, so that its end is not taken for that of the box.
func (c *Cluster) keep(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	box := pod.Labels[labelBox]
	if err := c.markClaim(ctx, claimOf(pod), nil); err != nil { // of an earlier pause, whose resume was not finished
		return nil, err
	}
	call, done, err := c.caller(ctx, box)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := call(ctx, http.MethodPut); err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "the files of the sandbox could not be kept, and it runs on: "+err.Error())
	}
	err = c.markClaim(ctx, claimOf(pod), pod)
	if err == nil {
		var next *corev1.Pod
		if next, err = c.markPod(ctx, pod); err == nil {
			return next, nil
		}
	}
	thawing, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawTime)
	defer cancel()
	return nil, errors.Join(err, call(thawing, http.MethodDelete))
}

// caller returns what asks envd in a box to keep its files, or to let its programs go on.
func (c *Cluster) caller(ctx context.Context, boxID string) (call func(ctx context.Context, method string) error, done func(), err error) {
	transport, control := c.config.Secrets(boxID)
	spec := adapters.Spec{BoxID: boxID, Envd: envd.Config{Transport: transport, Control: control}}
	open, done, err := c.open(ctx, boxID, c.reach)
	return func(ctx context.Context, method string) error {
		_, err := c.ask(ctx, spec, open, method, envd.RouteKeep, nil)
		return err
	}, done, err
}

// markClaim notes on a claim that it is that of a paused box, and which; nil: that it is not.
func (c *Cluster) markClaim(ctx context.Context, name string, paused *corev1.Pod) error {
	notes, marks := map[string]any{annotationPaused: nil}, map[string]any{}
	if paused != nil {
		image, id := imageOf(paused)
		notes = map[string]any{
			annotationPaused: stamp(time.Now()), annotationAttempt: paused.Annotations[annotationAttempt],
			annotationKeptImage: image, annotationImageID: id,
		}
		marks = map[string]any{labelBox: paused.Labels[labelBox], labelSandbox: paused.Labels[labelSandbox]}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes, "labels": marks}})
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the mark of a volume cannot be written")
	}
	_, err = c.core.PersistentVolumeClaims(c.config.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if absent(err) {
		return adapters.Wrap(adapters.KindPrecondition, err, "the sandbox's volume is gone: it cannot be paused")
	}
	return classify(ctx, err, "does not say whether the sandbox's volume was marked", true)
}

// markPod notes on a pod that its end is that of a pause.
func (c *Cluster) markPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{annotationPaused: stamp(time.Now())},
	}})
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the mark of a pod cannot be written")
	}
	next, err := c.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if absent(err) {
		return nil, notFound(pod.Labels[labelBox])
	}
	if err != nil {
		return nil, classify(ctx, err, "does not say whether the sandbox was marked as paused", true)
	}
	c.follow.put(next)
	return next, nil
}

// marked reports whether a pod ends, or has ended, by a pause of its box.
func marked(pod *corev1.Pod) bool { return pod.Annotations[annotationPaused] != "" }

// imageOf is the image by which a box's pod can be made again, and the id under which the node has it. An id that
// names a repository is used itself, so that a tag may move meanwhile.
func imageOf(pod *corev1.Pod) (image, id string) {
	image = pod.Spec.Containers[0].Image
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			id = status.ImageID
		}
	}
	if strings.Contains(id, "@") {
		image = id
	}
	return image, id
}
