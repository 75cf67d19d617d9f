package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/envd"
)

// testRights uses the adapter with the chart's role and nothing else, and compares what it did with what it may do.
func testRights(t *testing.T, c *cluster) {
	type way struct {
		name     string
		reach    adapter.Reach
		delivery adapter.Delivery
		set      map[string]any
	}
	ways := []way{
		{"address", adapter.ReachAddress, adapter.DeliverInit, map[string]any{}},
		{"port-forward", adapter.ReachForward, adapter.DeliverVolume, map[string]any{}},
		{"exec", adapter.ReachExec, adapter.DeliverCopy, map[string]any{}},
	}
	var out *provider.Outside
	if os.Getenv("ISTHMUS_TEST") == "soak" {
		fmt.Println("not in the gate, but in make test-kubernetes: the rights for volumes, network policies and agent-sandbox")
	} else {
		out = outside(t)
		enforce(t)
		all := map[string]any{"storageClass": volumes(t, c), "policyProbe": out.First.String()}
		ways = append(ways, way{"all-powers", adapter.ReachAddress, adapter.DeliverVolume, all},
			way{"agent-sandbox", adapter.ReachAddress, adapter.DeliverVolume, map[string]any{"agentSandbox": true}})
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			way.set["reach"], way.set["delivery"] = string(way.reach), string(way.delivery)
			rules := role(t, way.set)
			asked := &asked{verbs: map[string]bool{}}
			config := c.pool(with(way.reach, way.delivery))
			config.StorageClass, _ = way.set["storageClass"].(string)
			if way.set["policyProbe"] != nil {
				config.PolicyProbe = out.First
			}
			if way.set["agentSandbox"] != nil {
				config = newAgents(t, c).config(0)
				config.Reach, config.Delivery = way.reach, way.delivery
			}
			config.Client = c.account(t, "only-"+way.name, rules)
			config.Client.WrapTransport = asked.wrap
			if config.AgentSandbox {
				useClaims(t, newAgents(t, c), config, asked)
			} else {
				use(t, config)
			}
			var granted []string
			for _, rule := range rules {
				for _, verb := range rule.Verbs {
					granted = append(granted, rule.Resources[0]+" "+verb)
				}
			}
			slices.Sort(granted)
			used := asked.list()
			for _, stream := range []string{"pods/exec", "pods/portforward"} { // a server asks for both verbs, for one call
				if slices.Contains(used, stream+" get") || slices.Contains(used, stream+" create") {
					used = append(used, stream+" get", stream+" create")
				}
			}
			if slices.Contains(used, "networkpolicies patch") { // which makes one that is not there, and needs the right to
				used = append(used, "networkpolicies create")
			}
			for _, kind := range []string{"sandboxtemplates", "sandboxwarmpools"} {
				if slices.Contains(used, kind+" patch") {
					used = append(used, kind+" create")
				}
			}
			slices.Sort(used)
			require.Equal(t, granted, slices.Compact(used), "the role and what is done differ")
		})
	}
}

// use does with a pool what a facade does.
func use(t *testing.T, config adapter.Config) {
	t.Helper()
	p, err := adapter.Open(t.Context(), config)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	spec := func(id string) adapters.Spec {
		transport, control := secrets(id)
		return adapters.Spec{
			BoxID: id, Attempt: "attempt", Deployment: "rights", TeamID: "team", Template: template, Network: adapters.Network{Internet: true},
			Resources: adapters.Resources{CPU: 1, MemoryMB: 128, DiskMB: 128},
			Envd:      envd.Config{SandboxID: id, Transport: transport, Control: control, Deadline: time.Now().Add(time.Hour)},
		}
	}
	powers := adapters.PowersOf(p)
	stocked := spec("stocked0000000000001")
	stocked.Envd.SandboxID = ""
	_, err = powers.Stocker.Stock(t.Context(), stocked)
	require.NoError(t, err)
	claimed := spec("claimed0000000000001")
	require.Eventually(t, func() bool {
		_, err = powers.Stocker.Claim(t.Context(), claimed)
		return err == nil
	}, time.Minute, 50*time.Millisecond, "claim: %v", err)
	if powers.Pauser != nil {
		require.NoError(t, powers.Pauser.Pause(t.Context(), claimed.BoxID, adapters.LevelFilesystem))
		_, err = powers.Pauser.Resume(t.Context(), claimed)
		require.NoError(t, err)
	}
	if powers.Networker != nil {
		require.NoError(t, powers.Networker.SetNetwork(t.Context(), claimed.BoxID, adapters.Network{}))
	}
	require.NoError(t, powers.Extender.Extend(t.Context(), claimed.BoxID, time.Now().Add(2*time.Hour)))
	_, err = powers.Meter.Measure(t.Context(), claimed.BoxID)
	require.NoError(t, err)
	boxes, err := p.List(t.Context(), "rights")
	require.NoError(t, err)
	require.Len(t, boxes, 1)
	require.Equal(t, claimed.BoxID, boxes[0].ID)
	_, err = p.Get(t.Context(), claimed.BoxID)
	require.NoError(t, err)
	_, err = p.Get(t.Context(), stocked.BoxID)
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err), "a claimed box is still known by the id under which it was made")
	require.NoError(t, p.Destroy(t.Context(), claimed.BoxID))
}

// useClaims does with a pool of agent-sandbox what a facade does, the Sandbox included that its claim does not own any more.
func useClaims(t *testing.T, a *agents, config adapter.Config, asked *asked) {
	t.Helper()
	p, err := adapter.Open(t.Context(), config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = p.Run(ctx) })
	defer work.Wait()
	defer stop()
	spec := a.spec(t, p)
	_, err = p.Create(t.Context(), spec)
	require.NoError(t, err)
	require.NoError(t, adapters.PowersOf(p).Extender.Extend(t.Context(), spec.BoxID, time.Now().Add(2*time.Hour)))
	boxes, err := p.List(t.Context(), spec.Deployment)
	require.NoError(t, err)
	require.Len(t, boxes, 1)
	orphan := metav1.DeletePropagationOrphan
	require.NoError(t, a.of(claims).Delete(t.Context(), spec.BoxID, metav1.DeleteOptions{PropagationPolicy: &orphan}))
	require.Eventually(t, func() bool { return len(a.list(t, claims)) == 0 }, time.Minute, 50*time.Millisecond)
	require.NoError(t, p.Destroy(t.Context(), spec.BoxID))
	require.Eventually(t, func() bool { return slices.Contains(asked.list(), "sandboxwarmpools list") }, time.Minute, 50*time.Millisecond)
	a.empty(t)
}

// account is the access of a service account that has these rights in the namespace, and no others.
func (c *cluster) account(t *testing.T, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	roles, err := rbac.NewForConfig(c.config)
	require.NoError(t, err)
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: name, Namespace: c.namespace}
	_, err = c.core.ServiceAccounts(c.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = roles.Roles(c.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = roles.RoleBindings(c.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.namespace}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := c.core.ServiceAccounts(c.namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Status.Token
	return config
}

// asked notes what a client asked for, as resource and verb. It sees the streams of exec and port-forward only where
// they go over HTTP's own upgrade; the WebSocket client has the same right to them.
type asked struct {
	mu    sync.Mutex
	verbs map[string]bool
}

func (a *asked) wrap(next http.RoundTripper) http.RoundTripper { return asking{a, next} }

func (a *asked) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.verbs))
}

type asking struct {
	*asked
	next http.RoundTripper
}

// RoundTrip notes a request.
func (a asking) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/namespaces/") { // which kinds there are, everybody may ask
		return a.next.RoundTrip(r)
	}
	// /api/v1/namespaces/NS/pods/NAME/SUB, or /apis/GROUP/VERSION/namespaces/NS/...
	parts := strings.Split(r.URL.Path, "/")
	if parts[1] == "apis" {
		parts = slices.Delete(parts, 2, 3)
	}
	resource, verb := parts[min(5, len(parts)-1)], map[string]string{"GET": "get", "POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}[r.Method]
	switch {
	case len(parts) > 7:
		resource += "/" + parts[7]
	case len(parts) == 6 && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) == 6 && r.Method == http.MethodGet:
		verb = "list"
	}
	a.mu.Lock()
	a.verbs[resource+" "+verb] = true
	a.mu.Unlock()
	return a.next.RoundTrip(r)
}
