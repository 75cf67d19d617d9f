package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/isthmus/isthmus/adapters"
)

// The kinds of agent-sandbox (sigs.k8s.io/agent-sandbox) that a pool with AgentSandbox uses. Since release 0.5 of that
// project a SandboxClaim names the SandboxWarmPool that it is served from.
const (
	agentVersion = "v1beta1"
	agentGroup   = "agents.x-k8s.io"
	claimGroup   = "extensions.agents.x-k8s.io"
)

var (
	agentSandboxes = schema.GroupVersionResource{Group: agentGroup, Version: agentVersion, Resource: "sandboxes"}
	agentClaims    = schema.GroupVersionResource{Group: claimGroup, Version: agentVersion, Resource: "sandboxclaims"}
	agentTemplates = schema.GroupVersionResource{Group: claimGroup, Version: agentVersion, Resource: "sandboxtemplates"}
	agentPools     = schema.GroupVersionResource{Group: claimGroup, Version: agentVersion, Resource: "sandboxwarmpools"}
)

// agentPodName is the annotation of a Sandbox that names its pod; without it the pod has the Sandbox's own name.
const agentPodName = "agents.x-k8s.io/pod-name"

// agentClaim is what is read of a SandboxClaim.
type agentClaim struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		Conditions []metav1.Condition `json:"conditions"`
		Sandbox    struct {
			Name string `json:"name"`
		} `json:"sandbox"`
	} `json:"status"`
}

// agentSandbox is what is read of a Sandbox.
type agentSandbox struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// agentsOf is the access to objects of one kind in the pool's namespace.
func (c *Cluster) agentsOf(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	return c.agents.Resource(kind).Namespace(c.config.Namespace)
}

// read makes an object of the dynamic client one of ours.
func read[V any](object *unstructured.Unstructured) (*V, error) {
	into := new(V)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, adapters.Wrap(adapters.KindUnavailable, err, "the cluster's "+object.GetKind()+" cannot be read: docs/kubernetes.md names the versions that can")
	}
	return into, nil
}

// agentClaimOf returns the claim of a box. KindNotFound when there is none of ours.
func (c *Cluster) agentClaimOf(ctx context.Context, boxID string) (*agentClaim, error) {
	object, err := c.agentsOf(agentClaims).Get(ctx, boxID, metav1.GetOptions{})
	if absent(err) || err == nil && object.GetLabels()[labelManaged] != managedBy {
		return nil, notFound(boxID)
	}
	if err != nil {
		return nil, classify(ctx, err, "does not say whether the sandbox's claim is there", false)
	}
	return read[agentClaim](object)
}

// agentClaimsOf are the claims that are chosen; empty: all of the namespace.
func (c *Cluster) agentClaimsOf(ctx context.Context, chosen string) ([]*agentClaim, error) {
	var found []*agentClaim
	options := metav1.ListOptions{LabelSelector: chosen, Limit: page}
	for {
		list, err := c.agentsOf(agentClaims).List(ctx, options)
		if err != nil {
			return nil, listed(ctx, err, "does not list the claims of its sandboxes")
		}
		for i := range list.Items {
			claim, err := read[agentClaim](&list.Items[i])
			if err != nil {
				return nil, err
			}
			found = append(found, claim)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// note changes labels and annotations of an object, of this very one; nil removes one.
func (c *Cluster) note(ctx context.Context, claim *agentClaim, notes map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": claim.Metadata.UID, "annotations": notes}})
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "the note on a claim cannot be written")
	}
	_, err = c.agentsOf(agentClaims).Patch(ctx, claim.Metadata.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return classify(ctx, err, "does not take a note on the sandbox's claim", false)
}

// describeAgentClaim is a box of which nothing but a claim is known: it is being made, or has lost the pod that it had.
// A pod that was made in the place of a lost one is none of the box's.
func describeAgentClaim(claim *agentClaim) adapters.Box {
	m := claim.Metadata
	return adapters.Box{
		ID: m.Labels[labelBox], Attempt: m.Annotations[annotationAttempt], Deployment: m.Labels[labelDeployment], SandboxID: m.Labels[labelSandbox],
		CreatedAt: m.CreationTimestamp.Time, Alive: m.DeletionTimestamp == nil && m.Annotations[annotationPod] == "",
	}
}

// agentAlone adds to a list the boxes of which nothing but a claim was seen. One may have got its pod meanwhile, or be
// gone: it is looked at again.
func (c *Cluster) agentAlone(ctx context.Context, boxes []adapters.Box, claims []*agentClaim) ([]adapters.Box, error) {
	for _, claim := range claims {
		id := claim.Metadata.Labels[labelBox]
		if slices.ContainsFunc(boxes, func(b adapters.Box) bool { return b.ID == id }) {
			continue
		}
		box, err := c.Get(ctx, id)
		switch {
		case err == nil:
			boxes = append(boxes, box)
		case adapters.KindOf(err) != adapters.KindNotFound:
			return nil, err
		}
	}
	return boxes, nil
}

// probeAgents looks that the cluster has the kinds, in the version that is spoken here.
func (c *Cluster) probeAgents(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.config.Client)
	if err != nil {
		return adapters.Wrap(adapters.KindInvalid, err, "the access to the cluster is not usable: "+err.Error())
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return classify(ctx, err, "does not tell its kinds", false)
	}
	has := map[string]bool{}
	for _, served := range metav1.ExtractGroupVersions(groups) {
		if served != agentGroup+"/"+agentVersion && served != claimGroup+"/"+agentVersion {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(served)
		if err != nil {
			return classify(ctx, err, "does not tell its kinds", false)
		}
		for _, kind := range list.APIResources {
			has[strings.TrimSuffix(served, "/"+agentVersion)+" "+kind.Name] = true
		}
	}
	for _, kind := range []schema.GroupVersionResource{agentSandboxes, agentClaims, agentTemplates, agentPools} {
		if !has[kind.Group+" "+kind.Resource] {
			return adapters.Errorf(adapters.KindInvalid, "the cluster has no %s.%s of version %s: install agent-sandbox with its extensions "+
				"(docs/kubernetes.md names the releases), or configure the pool without agent_sandbox", kind.Resource, kind.Group, kind.Version)
		}
		c.findings.Agents = append(c.findings.Agents, fmt.Sprintf("%s.%s/%s", kind.Resource, kind.Group, kind.Version))
	}
	return nil
}

// condition returns one of an object's conditions; its zero value when there is none.
func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, one := range all {
		if one.Type == kind {
			return one
		}
	}
	return metav1.Condition{}
}

// podReady reports whether the kubelet says that a pod is ready.
func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool {
		return one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue
	})
}

// ofKind reports whether an owner is of a kind, in whichever version it was written down.
func ofKind(owner *metav1.OwnerReference, group, kind string) bool {
	return owner != nil && owner.Kind == kind && strings.HasPrefix(owner.APIVersion, group+"/")
}
