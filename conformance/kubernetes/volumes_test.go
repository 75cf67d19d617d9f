package kubernetes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/client-go/kubernetes/typed/storage/v1"
)

// volumes is a storage class of the cluster, whose volumes are folders that are made and removed by the test: the
// cluster has no provisioner. It returns the name of the class.
func volumes(t *testing.T, c *cluster) string {
	t.Helper()
	classes, err := storage.NewForConfig(c.config)
	require.NoError(t, err)
	mode := storagev1.VolumeBindingImmediate
	class, err := classes.StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "isthmus-"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	p := &provisioner{cluster: c, class: class.Name, folder: t.TempDir()}
	ctx, stop := context.WithCancel(context.Background())
	var work errgroup.Group
	work.Go(func() error { p.make(ctx); return nil })
	work.Go(func() error { p.remove(ctx); return nil })
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return len(p.left(t)) == 0 }, time.Minute, 100*time.Millisecond, "volumes were left")
		stop()
		_ = work.Wait()
		require.NoError(t, classes.StorageClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}))
	})
	return class.Name
}

type provisioner struct {
	cluster       *cluster
	class, folder string
}

// left are the volumes that are there.
func (p *provisioner) left(t *testing.T) []string {
	list, err := p.cluster.core.PersistentVolumes().List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, volume := range list.Items {
		if volume.Spec.StorageClassName == p.class {
			names = append(names, volume.Name)
		}
	}
	return names
}

// make makes a volume for each claim, until ctx ends.
func (p *provisioner) make(ctx context.Context) {
	for ctx.Err() == nil {
		changes, err := p.cluster.core.PersistentVolumeClaims(p.cluster.namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for event := range changes.ResultChan() {
			claim, is := event.Object.(*corev1.PersistentVolumeClaim)
			if !is || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != p.class {
				continue
			}
			name := p.class + "-" + string(claim.UID)
			kind := corev1.HostPathDirectoryOrCreate
			_, _ = p.cluster.core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ // a second time it is there already
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeSpec{
					Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: p.class,
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
					ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
					PersistentVolumeSource: corev1.PersistentVolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(p.folder, name), Type: &kind},
					},
				},
			}, metav1.CreateOptions{})
		}
	}
}

// remove removes the volumes of claims that are gone, until ctx ends.
func (p *provisioner) remove(ctx context.Context) {
	for ctx.Err() == nil {
		changes, err := p.cluster.core.PersistentVolumes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for event := range changes.ResultChan() {
			if volume, is := event.Object.(*corev1.PersistentVolume); is && volume.Spec.StorageClassName == p.class && volume.Status.Phase == corev1.VolumeReleased {
				_ = os.RemoveAll(filepath.Join(p.folder, volume.Name))
				_ = p.cluster.core.PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
			}
		}
	}
}

// claims are the names of claims in the namespace.
func (c *cluster) claims(t *testing.T) []string {
	t.Helper()
	list, err := c.core.PersistentVolumeClaims(c.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, claim := range list.Items {
		names = append(names, claim.Name)
	}
	return names
}
