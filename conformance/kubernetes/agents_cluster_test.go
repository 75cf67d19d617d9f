package kubernetes

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/envd"
)

var (
	sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}
	claims    = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxclaims"}
	templates = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxtemplates"}
	warmPools = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxwarmpools"}
)

// agents is a cluster with agent-sandbox.
type agents struct {
	*cluster
	client *dynamic.DynamicClient
}

func newAgents(t *testing.T, c *cluster) *agents {
	t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	return &agents{c, client}
}

func (a *agents) of(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	return a.client.Resource(kind).Namespace(a.namespace)
}

// config is a pool whose boxes are claims, of which so many are made ahead.
func (a *agents) config(ahead int) adapter.Config {
	return a.pool(func(config *adapter.Config) {
		config.AgentSandbox, config.Warm = true, map[string]int{"base": ahead}
		config.Default = adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 512}
	})
}

// open opens such a pool, which works until the case ends.
func (a *agents) open(t *testing.T, ahead int) *adapter.Provider {
	t.Helper()
	p, err := adapter.Open(t.Context(), a.config(ahead))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return p
}

// spec is a box of a pool.
func (a *agents) spec(t *testing.T, p *adapter.Provider) adapters.Spec {
	t.Helper()
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	id := "i" + strings.ReplaceAll(uuid.NewString(), "-", "")[:20]
	transport, control := secrets(id)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt", Deployment: "agents", TeamID: "team", Template: template, Network: adapters.Network{Internet: true},
		Resources: template.Resources,
		Envd:      envd.Config{SandboxID: id, Transport: transport, Control: control, DefaultUser: "root", Deadline: time.Now().Add(time.Hour)},
	}
}

func (a *agents) get(t *testing.T, kind schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := a.of(kind).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return object
}

// list are the names of the objects of a kind.
func (a *agents) list(t *testing.T, kind schema.GroupVersionResource) []string {
	t.Helper()
	list, err := a.of(kind).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, one := range list.Items {
		names = append(names, one.GetName())
	}
	return names
}

// given is the name of the Sandbox that a claim is said to have.
func (a *agents) given(t *testing.T, claim string) string {
	t.Helper()
	name, _, err := unstructured.NestedString(a.get(t, claims, claim).Object, "status", "sandbox", "name")
	require.NoError(t, err)
	return name
}

// podOf is the pod of a box.
func (a *agents) podOf(t *testing.T, box string) *corev1.Pod {
	t.Helper()
	list, err := a.core.Pods(a.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "isthmus.dev/box=" + box})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	return &list.Items[0]
}

// ready waits until so many boxes were made ahead.
func (a *agents) ready(t *testing.T, ahead int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := a.of(warmPools).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false
		}
		ready, _, _ := unstructured.NestedInt64(list.Items[0].Object, "status", "readyReplicas")
		all, _, _ := unstructured.NestedInt64(list.Items[0].Object, "status", "replicas")
		return ready == ahead && all == ahead
	}, 2*time.Minute, 50*time.Millisecond, "no boxes are made ahead")
}

// keep changes how many boxes are made ahead, and waits for none to be there where none should be.
func (a *agents) keep(t *testing.T, ahead int64) {
	t.Helper()
	for _, name := range a.list(t, warmPools) {
		a.patch(t, warmPools, name, map[string]any{"spec": map[string]any{"replicas": ahead}})
	}
	a.ready(t, ahead)
}

func (a *agents) patch(t *testing.T, kind schema.GroupVersionResource, name string, change map[string]any, part ...string) {
	t.Helper()
	text, err := json.Marshal(change)
	require.NoError(t, err)
	_, err = a.of(kind).Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{}, part...)
	require.NoError(t, err)
}

// empty removes what boxes were made from, and looks that nothing is left.
func (a *agents) empty(t *testing.T) {
	t.Helper()
	require.Empty(t, a.list(t, claims), "claims were left")
	for _, kind := range []schema.GroupVersionResource{warmPools, templates} {
		for _, name := range a.list(t, kind) {
			require.NoError(t, a.of(kind).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
	require.Eventually(t, func() bool { return len(a.list(t, sandboxes)) == 0 && len(a.pods(t)) == 0 }, time.Minute, 100*time.Millisecond, "Sandboxes or pods were left")
}
