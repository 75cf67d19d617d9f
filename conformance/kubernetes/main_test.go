package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
)

// kubeconfig is the variable that names the administrator's access to the cluster.
const kubeconfig = "ISTHMUS_TEST_KUBECONFIG"

// TestCluster runs the cases on the cluster, in their order: what breaks the cluster comes last.
func TestCluster(t *testing.T) {
	if os.Getenv(kubeconfig) == "" {
		fmt.Println("no case is listed: the cluster is brought up by `make test-kubernetes`")
		return
	}
	short, left := os.Getenv("ISTHMUS_TEST") == "soak", []string{}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *cluster)
		gate bool // part of the gate; the others are for `make test-kubernetes`
	}{
		{"the adapter", testAdapter, true},
		{"rights", testRights, true},
		{"isolation", testIsolation, true},
		{"the program of the README", testHello, true},
		{"pause", testPause, true},
		{"network", testNetwork, false},
		{"python", testPython, true},
		{"javascript", testJavaScript, false},
		{"upload", testUpload, false},
		{"speed", testSpeed, false},
		{"many", testMany, false},
		{"agent-sandbox", testAgents, true},
		{"pods that end", testPodsThatEnd, true},
		{"the API server is away", testServerAway, true},
		{"a node is lost", testNodeLost, false},
	} {
		if short && !c.gate {
			left = append(left, c.name)
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(t, access(t)) })
	}
	if short {
		fmt.Println("not listed in the gate, but in make test-kubernetes:", strings.Join(left, ", "))
	}
}

// cluster is the administrator's access to the cluster, and a namespace that is removed afterwards.
type cluster struct {
	config    *rest.Config
	core      *client.CoreV1Client
	namespace string
}

func access(t *testing.T) *cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfig))
	require.NoError(t, err)
	config.QPS, config.Burst = 200, 400
	core, err := client.NewForConfig(config)
	require.NoError(t, err)
	made, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "isthmus-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, core.Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{}))
	})
	return &cluster{config: config, core: core, namespace: made.Name}
}

// pool is the configuration of a pool in the cluster.
func (c *cluster) pool(change ...func(*adapter.Config)) adapter.Config {
	config := adapter.Config{
		Client: c.config, Namespace: c.namespace, Secrets: secrets, Reserve: 0.02, PullPolicy: corev1.PullNever,
		Templates: map[string]string{"base": "localhost/base:1"}, EnvdImage: "localhost/envd:1",
	}
	for _, f := range change {
		f(&config)
	}
	return config
}

// pods are the pods of the namespace.
func (c *cluster) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := c.core.Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// alive are the names of pods that are not about to go.
func (c *cluster) alive(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pod := range c.pods(t) {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// secrets are those of a box, as the fleet would derive them.
func secrets(boxID string) (transport, control string) {
	return "transport of " + boxID, "control of " + boxID
}

// top is the absolute path of a file of the repository.
func top(t *testing.T, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"../.."}, elements...)...))
	require.NoError(t, err)
	return path
}
