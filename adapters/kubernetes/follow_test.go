package kubernetes

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at gives a pod as the watch tells of it at a time.
func at(version int, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: "uid", ResourceVersion: strconv.Itoa(version), Labels: map[string]string{labelBox: "box"}}}
	pod.Status.Phase = corev1.PodRunning
	change(pod)
	return pod
}

func exited(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
}

func evicted(pod *corev1.Pod) {
	exited(pod)
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "its disk is full"
}

func TestAnEvictionIsTheReasonAlsoWhenTheExitComesFirst(t *testing.T) {
	c := &Cluster{follow: newFollow(&Cluster{})}
	c.follow.put(at(1, func(*corev1.Pod) {}))
	one := c.follow.put(at(2, exited))
	select {
	case <-one.ended:
	default:
		require.Fail(t, "the end is told only when its reason is known")
	}
	told := make(chan string)
	go func() { told <- c.Why(t.Context(), "box") }()
	select {
	case text := <-told:
		require.Fail(t, "the reason is not waited for", text)
	case <-time.After(50 * time.Millisecond): // it has had the time for a wrong answer
	}
	c.follow.put(at(3, evicted))
	require.Equal(t, "Evicted: its disk is full", <-told)
	c.follow.put(at(4, func(pod *corev1.Pod) { exited(pod); pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} }))
	require.Equal(t, "Evicted: its disk is full", c.Why(context.Background(), "box"), "what is removed then has another reason")
}

func TestAnExitWithoutAReasonIsToldAtItsEnd(t *testing.T) {
	c := &Cluster{follow: newFollow(&Cluster{})}
	c.follow.put(at(1, exited))
	c.follow.put(at(2, func(pod *corev1.Pod) { exited(pod); pod.Status.Phase = corev1.PodSucceeded }))
	require.Equal(t, "its first process ended", c.Why(t.Context(), "box"))
}
