package kubernetes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// rounds is how often each way is measured.
const rounds = 9

// testSpeed prints how long it takes from a create to the end of a first command: of a bare pod with create and exec,
// of a sandbox, and of one that was made ahead, in one cluster and run, by turns. It asserts nothing of the figures.
func testSpeed(t *testing.T, c *cluster) {
	cold, warm := newFacade(t, c), newFacade(t, access(t), "warm: {base: 2}")
	took := map[string][]time.Duration{}
	measure := func(name string, once func()) {
		began := time.Now()
		once()
		took[name] = append(took[name], time.Since(began))
	}
	for range rounds {
		pod := &corev1.Pod{}
		measure("bare", func() { pod = c.bare(t) })
		require.NoError(t, c.core.Pods(c.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
		var id string
		measure("cold", func() { id = cold.create(); cold.runs(id) })
		cold.call(http.MethodDelete, "/sandboxes/"+id, "", nil)
		warm.stocked(2)
		measure("warm", func() { id = warm.create(); warm.runs(id) })
		warm.call(http.MethodDelete, "/sandboxes/"+id, "", nil)
	}
	middle := func(name string) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	bare := middle("bare")
	for _, name := range []string{"bare", "cold", "warm"} {
		fmt.Printf("create to first command, p50 of %d, %s: %v, %.2f of a bare pod\n", rounds, name, middle(name).Round(time.Millisecond), float64(middle(name))/float64(bare))
	}
}

// bare makes a pod and runs a command in it, as kubectl would.
func (c *cluster) bare(t *testing.T) *corev1.Pod {
	t.Helper()
	pods := c.core.Pods(c.namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "localhost/base:1", ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "600"},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	changes, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion})
	require.NoError(t, err)
	defer changes.Stop()
	for event := range changes.ResultChan() {
		if now, is := event.Object.(*corev1.Pod); is && now.Status.Phase == corev1.PodRunning {
			break
		}
	}
	request := c.core.RESTClient().Post().Resource("pods").Namespace(c.namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"/bin/true"}, Stdout: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, request.URL().String())
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}))
	return pod
}

// stocked waits until so many sandboxes were made ahead and none is about to go.
func (f *facade) stocked(count int) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		list, err := f.cluster.core.Pods(f.cluster.namespace).List(f.t.Context(), metav1.ListOptions{LabelSelector: "!isthmus.dev/sandbox"})
		if err != nil {
			return false
		}
		ready := 0
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				ready++
			}
		}
		return ready == count
	}, 2*time.Minute, 50*time.Millisecond, "no sandboxes are made ahead")
	time.Sleep(500 * time.Millisecond) // that the facade knows it shows nowhere; an early create is only slower
}
