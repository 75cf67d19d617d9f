package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// many is how many sandboxes there are at a time: more than this machine can run, so that a fake kubelet stands in.
const many = 500

// testMany makes, lists and removes many sandboxes through a facade against the real API server and scheduler.
func testMany(t *testing.T, c *cluster) {
	fakeNode(t, c)
	f := newFacade(t, c, "node_selector: {isthmus-test: fake}", "delivery: volume", "reach: address")
	began := time.Now()
	var work errgroup.Group
	work.SetLimit(16)
	for range many {
		work.Go(func() error {
			status, text := f.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","timeout":3600}`, nil)
			if status != http.StatusCreated {
				return fmt.Errorf("create: %d %s", status, text)
			}
			return nil
		})
	}
	require.NoError(t, work.Wait())
	made := time.Since(began)
	require.Len(t, c.pods(t), many)
	listed, next := 0, ""
	for page := 0; page == 0 || next != ""; page++ {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v2/sandboxes?limit=100&nextToken="+next, nil)
		require.NoError(t, err)
		request.Header.Set("X-Api-Key", key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		var entries []map[string]any
		decode(t, response, &entries)
		listed += len(entries)
		next = response.Header.Get("X-Next-Token")
	}
	require.Equal(t, many, listed)
	began = time.Now()
	out, err := f.isthmus("sandboxes", "kill", "--all")
	require.NoError(t, err, out)
	require.Eventually(t, func() bool { return len(c.pods(t)) == 0 }, 2*time.Minute, 100*time.Millisecond, "pods were left")
	fmt.Printf("%d sandboxes: made in %v, removed in %v, none left\n", many, made.Round(time.Second), time.Since(began).Round(time.Second))
}

// fakeNode is a node without a kubelet: its pods are said to run, at an address where an envd answers that does
// nothing, and go at once when they are deleted.
func fakeNode(t *testing.T, c *cluster) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:49980")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path != "/health" {
			_, _ = w.Write([]byte("[]"))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	room := corev1.ResourceList{"cpu": resource.MustParse("4k"), "memory": resource.MustParse("8Ti"), "ephemeral-storage": resource.MustParse("90Ti"), "pods": resource.MustParse("1000")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fake", Labels: map[string]string{"isthmus-test": "fake", corev1.LabelHostname: "fake"}}}
	_, err = c.core.Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.core.Nodes().Delete(context.Background(), "fake", metav1.DeleteOptions{}) })
	beat := func(ctx context.Context) {
		now, err := c.core.Nodes().Get(ctx, "fake", metav1.GetOptions{})
		if err != nil {
			return
		}
		now.Status.Capacity, now.Status.Allocatable = room, room
		now.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		_, _ = c.core.Nodes().UpdateStatus(ctx, now, metav1.UpdateOptions{}) // a conflict is met at the next beat
	}
	ctx, stop := context.WithCancel(context.Background())
	var work errgroup.Group
	work.Go(func() error {
		for ctx.Err() == nil {
			beat(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
		return nil
	})
	work.Go(func() error { return fakeKubelet(ctx, c) })
	t.Cleanup(func() { stop(); _ = work.Wait() })
}

// fakeKubelet says that the pods of the fake node run, until ctx ends.
func fakeKubelet(ctx context.Context, c *cluster) error {
	pods := c.core.Pods(c.namespace)
	for ctx.Err() == nil {
		changes, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=fake"})
		if err != nil {
			continue
		}
		for event := range changes.ResultChan() {
			pod, is := event.Object.(*corev1.Pod)
			switch {
			case !is:
			case pod.DeletionTimestamp != nil:
				none := int64(0)
				_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none})
			case pod.Status.Phase != corev1.PodRunning:
				status := `{"status":{"phase":"Running","podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}],"containerStatuses":[{"name":"sandbox","image":"i","imageID":"i","ready":true,"restartCount":0,"state":{"running":{"startedAt":` + strconv.Quote(time.Now().UTC().Format(time.RFC3339)) + `}}}]}}`
				_, _ = pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			}
		}
	}
	return nil
}
