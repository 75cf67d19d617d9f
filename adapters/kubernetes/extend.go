package kubernetes

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
)

// Extend notes a box's end on its pod, for whoever looks at the cluster. Envd, which keeps it, is told by the
// bootstrap.
func (c *Cluster) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	name, err := c.name(ctx, boxID)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotationDeadline: stamp(deadline)}}})
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the deadline cannot be written")
	}
	pod, err := c.core.Pods(c.config.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if absent(err) {
		return notFound(boxID)
	}
	if err != nil {
		c.log.Warn("the deadline of a pod could not be noted", "pod", name, "err", err)
		return ctx.Err() // envd keeps it, and can be told while the API server is away
	}
	if pod.Labels[labelBox] != boxID || over(pod) {
		return notFound(boxID)
	}
	c.follow.put(pod)
	return nil
}

// name is the name of a box's pod, as the watch knows it, else as the API server does.
func (c *Cluster) name(ctx context.Context, boxID string) (string, error) {
	if one, pod := c.follow.of(boxID); one != nil {
		return pod.Name, nil
	}
	pod, err := c.find(ctx, boxID)
	if err != nil {
		return "", err
	}
	c.follow.put(pod)
	return pod.Name, nil
}
