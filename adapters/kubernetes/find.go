package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus/isthmus/adapters"
)

// page bounds one answer of a list.
const page = 500

// Get returns one box, as the API server has it now.
func (c *Cluster) Get(ctx context.Context, boxID string) (adapters.Box, error) {
	pod, err := c.find(ctx, boxID)
	if err != nil && adapters.KindOf(err) == adapters.KindNotFound && c.keeps() && boxIDs.MatchString(boxID) {
		claim, err := c.claimAlone(ctx, boxID)
		if err != nil {
			return adapters.Box{}, err
		}
		return describeClaim(claim), nil
	}
	if err != nil && adapters.KindOf(err) == adapters.KindNotFound && c.config.AgentSandbox && boxIDs.MatchString(boxID) {
		claim, err := c.agentClaimOf(ctx, boxID)
		if err != nil {
			return adapters.Box{}, err
		}
		return describeAgentClaim(claim), nil
	}
	if err != nil {
		return adapters.Box{}, err
	}
	return describe(pod), nil
}

// find looks a box's pod up, by its name and then by its label.
func (c *Cluster) find(ctx context.Context, boxID string) (*corev1.Pod, error) {
	if !boxIDs.MatchString(boxID) {
		return nil, notFound(boxID)
	}
	pods := c.core.Pods(c.config.Namespace)
	pod, err := pods.Get(ctx, boxID, metav1.GetOptions{})
	if err == nil && pod.Labels[labelBox] == boxID && pod.Labels[labelManaged] == managedBy {
		return pod, nil
	}
	if err != nil && !absent(err) {
		return nil, classify(ctx, err, "does not say whether the sandbox is there", false)
	}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector(labelBox, boxID)})
	if err != nil {
		return nil, listed(ctx, err, "does not say whether the sandbox is there")
	}
	if len(list.Items) == 0 {
		return nil, notFound(boxID)
	}
	return &list.Items[0], nil
}

// List returns every box with the deployment's label, as the API server has them now.
func (c *Cluster) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	claims, err := c.claims(ctx, selector(labelDeployment, deployment)) // before the pods: one that comes between is seen twice
	if err != nil {
		return nil, err
	}
	var agents []*agentClaim
	if c.config.AgentSandbox {
		if agents, err = c.agentClaimsOf(ctx, selector(labelDeployment, deployment)); err != nil {
			return nil, err
		}
	}
	var boxes []adapters.Box
	used := map[string]bool{}
	options := metav1.ListOptions{LabelSelector: selector(labelDeployment, deployment), Limit: page}
	for {
		list, err := c.core.Pods(c.config.Namespace).List(ctx, options)
		if err != nil {
			return nil, listed(ctx, err, "does not list its sandboxes")
		}
		for i := range list.Items {
			pod := &list.Items[i]
			boxes, used[claimOf(pod)] = append(boxes, describe(pod)), true
			if marked(pod) && pod.DeletionTimestamp == nil { // its pause was not finished
				if err := c.delete(ctx, pod, nil); err != nil {
					c.log.Warn("the pod of a paused sandbox does not end", "pod", pod.Name, "err", err)
				}
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if c.config.AgentSandbox {
		return c.agentAlone(ctx, boxes, agents)
	}
	return c.alone(ctx, boxes, claims, used)
}

// alone adds to a list the boxes of which nothing but the volume is there. One that was seen to be alone a moment ago
// may have got a pod meanwhile, and gone or come to an end: it is looked at again.
func (c *Cluster) alone(ctx context.Context, boxes []adapters.Box, claims []corev1.PersistentVolumeClaim, used map[string]bool) ([]adapters.Box, error) {
	for i := range claims {
		if used[claims[i].Name] {
			continue
		}
		box, err := c.Get(ctx, claims[i].Labels[labelBox])
		switch {
		case err == nil:
			boxes = append(boxes, box)
		case adapters.KindOf(err) != adapters.KindNotFound:
			return nil, err
		}
	}
	return boxes, nil
}

// Ended tells of the end of a box, however it ended: its processes ended, or its pod was evicted or deleted.
func (c *Cluster) Ended(boxID string) (<-chan struct{}, error) {
	if one, _ := c.follow.of(boxID); one != nil {
		return one.ended, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	pod, err := c.find(ctx, boxID)
	if err != nil {
		return nil, err
	}
	return c.follow.put(pod).ended, nil
}

// endsKept is how many ends are remembered of pods whose objects are gone: whoever asks why does so at once.
const endsKept = 200

// whyTime bounds the wait for the cluster's word on an end: a kubelet tells of the exit of a container first, and a
// moment later that it evicted the pod.
const whyTime = 5 * time.Second

// Why says what ended a box, also when nothing of its pod is left.
func (c *Cluster) Why(ctx context.Context, boxID string) string {
	c.concluded(ctx, boxID)
	if text := c.follow.why(boxID); text != "" {
		return text
	}
	pod, err := c.find(ctx, boxID)
	if err != nil || !over(pod) {
		return ""
	}
	return why(pod)
}

// concluded returns when the cluster has said of a pod that ended all that it will.
func (c *Cluster) concluded(ctx context.Context, boxID string) {
	ctx, cancel := context.WithTimeout(ctx, whyTime)
	defer cancel()
	one, _ := c.follow.of(boxID)
	for one != nil {
		pod, changed := c.follow.state(one)
		final := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp != nil
		if !over(pod) || final || reason(pod) != "" || c.heard(ctx, pod, changed) != nil {
			return
		}
	}
}

func describe(pod *corev1.Pod) adapters.Box {
	return adapters.Box{
		ID: pod.Labels[labelBox], Attempt: pod.Annotations[annotationAttempt], Deployment: pod.Labels[labelDeployment],
		SandboxID: pod.Labels[labelSandbox], CreatedAt: pod.CreationTimestamp.Time, Alive: !over(pod) || marked(pod), Paused: marked(pod),
	}
}

// over reports whether a pod has ended or is about to.
func over(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated != nil {
			return true
		}
	}
	return false
}

// reason is the cluster's own for ending a pod; empty: it says none.
func reason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return strings.TrimSuffix(pod.Status.Reason+": "+pod.Status.Message, ": ")
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return condition.Reason
		}
	}
	return ""
}

// why says in the cluster's own words what ended a pod.
func why(pod *corev1.Pod) string {
	if text := reason(pod); text != "" {
		return text
	}
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil && (end.ExitCode != 0 || end.Reason != "Completed") {
			return fmt.Sprintf("%s, exit code %d", end.Reason, end.ExitCode)
		}
	}
	if deadline, err := time.Parse(time.RFC3339Nano, pod.Annotations[annotationDeadline]); err == nil && time.Now().After(deadline) {
		return "its deadline passed"
	}
	if pod.DeletionTimestamp != nil {
		return "its pod was deleted"
	}
	return "its first process ended"
}
