package kubernetes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus/isthmus/adapters"
)

const (
	// keepVolume and keepFolder are where a box's own volume is, on which a pause keeps its files.
	keepVolume = "keep"
	keepFolder = "/var/lib/isthmus"
	// claimPause is the wait between two looks whether a claim is gone.
	claimPause = 50 * time.Millisecond
)

// keeps reports whether boxes have a volume, and can be paused.
func (c *Cluster) keeps() bool { return c.config.StorageClass != "" }

// claim is the claim of a box's volume. It has the name of the pod for which it is made, and outlives it only while
// the box is paused.
func (c *Cluster) claim(spec adapters.Spec) *corev1.PersistentVolumeClaim {
	size := resource.NewQuantity(int64(spec.Resources.DiskMB)<<20, resource.BinarySI)
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: spec.BoxID, Namespace: c.config.Namespace,
			Labels:      map[string]string{labelManaged: managedBy, labelDeployment: value(spec.Deployment), labelBox: spec.BoxID},
			Annotations: map[string]string{annotationAttempt: spec.Attempt},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &c.config.StorageClass, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *size}},
		},
	}
}

// mount gives a pod the volume of a claim; kept says that there is something on it to bring back.
func mount(pod *corev1.Pod, claim string, kept bool) {
	box := &pod.Spec.Containers[0]
	box.Command = append(box.Command, "--volume", keepFolder)
	if kept {
		box.Command = append(box.Command, "--restore")
	}
	box.VolumeMounts = append(box.VolumeMounts, corev1.VolumeMount{Name: keepVolume, MountPath: keepFolder})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: keepVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// claimOf is the name of the claim that a pod uses; empty: it has none.
func claimOf(pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == keepVolume && volume.PersistentVolumeClaim != nil {
			return volume.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// makeClaim makes the claim of a new box, where boxes have one.
func (c *Cluster) makeClaim(ctx context.Context, spec adapters.Spec) error {
	if !c.keeps() {
		return nil
	}
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err := c.core.PersistentVolumeClaims(c.config.Namespace).Create(calling, c.claim(spec), metav1.CreateOptions{})
	return classify(calling, err, "did not make the sandbox's volume", true)
}

// claims are those that are chosen and not about to go.
func (c *Cluster) claims(ctx context.Context, chosen string) ([]corev1.PersistentVolumeClaim, error) {
	if !c.keeps() {
		return nil, nil
	}
	var found []corev1.PersistentVolumeClaim
	options := metav1.ListOptions{LabelSelector: chosen, Limit: page}
	for {
		list, err := c.core.PersistentVolumeClaims(c.config.Namespace).List(ctx, options)
		if err != nil {
			return nil, listed(ctx, err, "does not list the volumes of its sandboxes")
		}
		for _, claim := range list.Items {
			if claim.DeletionTimestamp == nil {
				found = append(found, claim)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// claimAlone finds the claim of a box that has no pod.
func (c *Cluster) claimAlone(ctx context.Context, boxID string) (*corev1.PersistentVolumeClaim, error) {
	found, err := c.claims(ctx, selector(labelBox, boxID))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, notFound(boxID)
	}
	return &found[0], nil
}

// dropClaims removes the claims of a box, and that of its pod, and returns when they are gone.
func (c *Cluster) dropClaims(ctx context.Context, boxID, ofPod string) error {
	found, err := c.claims(ctx, selector(labelBox, boxID))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, claim := range found {
		names[claim.Name] = true
	}
	if ofPod != "" {
		names[ofPod] = true
	}
	for name := range names {
		if err := c.dropClaim(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) dropClaim(ctx context.Context, name string) error {
	claims := c.core.PersistentVolumeClaims(c.config.Namespace)
	if err := claims.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !absent(err) {
		return classify(ctx, err, "does not remove the sandbox's volume", false)
	}
	for {
		_, err := claims.Get(ctx, name, metav1.GetOptions{})
		if absent(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(claimPause):
		}
	}
}

// describeClaim is a box of which nothing but its volume is there: it is paused, or these are its remains.
func describeClaim(claim *corev1.PersistentVolumeClaim) adapters.Box {
	paused := claim.Annotations[annotationPaused] != ""
	box := adapters.Box{
		ID: claim.Labels[labelBox], Attempt: claim.Annotations[annotationAttempt], Deployment: claim.Labels[labelDeployment],
		SandboxID: claim.Labels[labelSandbox], CreatedAt: claim.CreationTimestamp.Time, Alive: paused, Paused: paused,
	}
	return box
}
