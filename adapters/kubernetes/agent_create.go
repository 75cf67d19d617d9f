package kubernetes

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus/isthmus/adapters"
)

const (
	// proofTime is how long a claim that is said to be ready may take until it is proven.
	proofTime = 5 * time.Second
	// proofPause is between two looks meanwhile, claimLook between two at a claim of which nothing is heard.
	proofPause = 100 * time.Millisecond
	claimLook  = time.Second
	// missingTime is how long the controllers may say that they know no template which was just made.
	missingTime = 10 * time.Second
	// silentTime is how long the controllers may say nothing of a claim.
	silentTime = 20 * time.Second
	// finishedTime is how long the cluster keeps a claim whose pod has ended, in seconds, where no facade removes it.
	finishedTime = 600
)

// admitAgents refuses what a claim cannot take.
func (c *Cluster) admitAgents(spec adapters.Spec) error {
	if !c.config.AgentSandbox {
		return nil
	}
	const advice = "sandboxes of this pool come from SandboxTemplates: choose another pool"
	if spec.Resources != c.config.Default {
		d := c.config.Default
		return adapters.Errorf(adapters.KindUnsupported, "a sandbox of this pool has %d CPUs, %d MiB of memory and %d MiB of disk, neither more nor less: "+
			"ask for these, or choose another pool", d.CPU, d.MemoryMB, d.DiskMB)
	}
	if !open(spec.Network) {
		return adapters.Errorf(adapters.KindUnsupported, "rules for the network cannot be kept: %s", advice)
	}
	return nil
}

// adopt makes a box by a claim, and returns when its pod is proven to be its own. What cannot be proven is given back.
func (c *Cluster) adopt(ctx context.Context, spec adapters.Spec, image string, ready int) (*corev1.Pod, error) {
	if err := c.shelve(ctx, spec.Template, image, ready); err != nil {
		return nil, err
	}
	claim, err := c.postAgentClaim(ctx, spec)
	if err != nil {
		return nil, err
	}
	a := &adoption{cluster: c, spec: spec, claim: claim, began: time.Now()}
	pod, err := a.run(ctx)
	if err != nil {
		return nil, c.undone(ctx, err, func(clean context.Context) error { return c.giveBack(clean, a.claim) })
	}
	return pod, nil
}

// postAgentClaim makes the claim. The call is not cut off with the caller's: an answer tells what is there.
func (c *Cluster) postAgentClaim(ctx context.Context, spec adapters.Spec) (*agentClaim, error) {
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	end := time.Now().Add(c.config.MaxLife + lifeMargin).UTC().Format(time.RFC3339)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": agentClaims.GroupVersion().String(), "kind": "SandboxClaim",
		"spec": map[string]any{
			"warmPoolRef": map[string]any{"name": c.shelf(spec.Template.Name)},
			"lifecycle": map[string]any{
				"shutdownTime": end, "shutdownPolicy": "DeleteForeground", "ttlSecondsAfterFinished": int64(finishedTime),
			},
		},
	}}
	marks, notes := c.marks(spec)
	object.SetName(spec.BoxID)
	object.SetLabels(marks)
	object.SetAnnotations(notes)
	made, err := c.agentsOf(agentClaims).Create(calling, object, metav1.CreateOptions{})
	if err != nil {
		return nil, classify(calling, err, "did not make the sandbox's claim", true)
	}
	return read[agentClaim](made)
}

// adoption is a claim on its way to a pod.
type adoption struct {
	cluster *Cluster
	spec    adapters.Spec
	claim   *agentClaim
	began   time.Time
	// ready is since when the claim is said to be ready, missing since when the controllers know no template.
	ready, missing time.Time
}

// run returns the pod once it is proven, and marked, and proven again.
func (a *adoption) run(ctx context.Context) (*corev1.Pod, error) {
	var marked *corev1.Pod
	for {
		next, err := a.cluster.agentClaimOf(ctx, a.spec.BoxID)
		if err != nil {
			if kind := adapters.KindOf(err); kind != adapters.KindNotFound && ctx.Err() == nil && kind == adapters.KindUnavailable {
				if err := wait(ctx, claimLook); err != nil {
					return nil, err
				}
				continue // an API server that is away is waited for, as long as the caller does
			}
			return nil, started(err, a.spec.BoxID)
		}
		if next.Metadata.UID != a.claim.Metadata.UID || next.Metadata.DeletionTimestamp != nil {
			return nil, started(notFound(a.spec.BoxID), a.spec.BoxID)
		}
		a.claim = next
		pod, doubt, err := a.cluster.prove(ctx, next, time.Since(a.began) > a.cluster.config.Schedule)
		if err == nil && doubt == "" {
			if marked != nil && marked.UID == pod.UID {
				return marked, a.cluster.note(ctx, next, map[string]any{annotationPod: string(pod.UID)})
			}
			if marked, err = a.cluster.markAdopted(ctx, pod, a.spec); marked != nil {
				continue // whoever had the pod meanwhile shows now
			}
			doubt = "its pod changed meanwhile"
		}
		if err == nil {
			err = a.patient(ctx, doubt)
		}
		if err != nil {
			a.cluster.unmark(ctx, marked)
			return nil, err
		}
	}
}

// started is the error of a claim that went away while it was waited for.
func started(err error, boxID string) error {
	if adapters.KindOf(err) == adapters.KindNotFound {
		return adapters.Wrap(adapters.KindUnavailable, err, "the claim of the sandbox "+boxID+" was deleted while it started")
	}
	return err
}

// patient waits for the next look at a claim that is not proven yet, or says why there is none.
func (a *adoption) patient(ctx context.Context, doubt string) error {
	state, pause := condition(a.claim.Status.Conditions, "Ready"), claimLook
	if err := refusedClaim(state); err != nil {
		return err
	}
	if state.Reason == "" && time.Since(a.began) > silentTime {
		return adapters.Errorf(adapters.KindUnavailable, "nothing in the cluster answers the sandbox's claim: the controllers of agent-sandbox must run, with --extensions")
	}
	if strings.HasSuffix(state.Reason, "NotFound") { // of the template or the SandboxWarmPool
		a.cluster.unshelved(a.spec.Template.Name)
		if a.missing.IsZero() {
			a.missing = time.Now()
		}
		if time.Since(a.missing) > missingTime {
			return adapters.Errorf(adapters.KindUnavailable, "the cluster's agent-sandbox controller does not know the sandbox's template (%s): try again", state.Message)
		}
		// It looks again by itself after a minute only, and at once when the claim changes.
		if err := a.cluster.note(ctx, a.claim, map[string]any{annotationLook: stamp(time.Now())}); err != nil {
			return err
		}
	}
	if state.Status != metav1.ConditionTrue {
		a.ready = time.Time{}
	} else {
		pause = proofPause
		if a.ready.IsZero() {
			a.ready = time.Now()
		}
		if time.Since(a.ready) > proofTime {
			return adapters.Errorf(adapters.KindUnavailable, "the cluster's agent-sandbox controller says that the sandbox is ready, and it cannot be proven: %s; "+
				"it was given back, try again", doubt)
		}
	}
	return a.cluster.claimChanges(ctx, a.claim, pause)
}

// refusedClaim is the error of a claim of which the controllers say that it will not be served.
func refusedClaim(state metav1.Condition) error {
	switch state.Reason {
	case "InvalidMetadata", "EnvVarsInjectionRejected", "VolumeClaimTemplatesError":
		return adapters.Errorf(adapters.KindInvalid, "the cluster's agent-sandbox controller refuses the sandbox's claim (%s): %s", state.Reason, state.Message)
	case "ClaimExpired", "SandboxExpired", "PodFailed", "PodSucceeded":
		return adapters.Errorf(adapters.KindUnavailable, "the sandbox ended while it started (%s)", state.Reason)
	}
	if strings.Contains(state.Message, "exceeded quota") {
		return adapters.Errorf(adapters.KindQuota, "the quota of the namespace is used up: raise it, or wait until sandboxes have ended")
	}
	return nil
}

// claimChanges returns when a claim has changed, or after a pause.
func (c *Cluster) claimChanges(ctx context.Context, claim *agentClaim, pause time.Duration) error {
	looking, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	changes, err := c.agentsOf(agentClaims).Watch(looking, metav1.ListOptions{
		FieldSelector: "metadata.name=" + claim.Metadata.Name, ResourceVersion: claim.Metadata.ResourceVersion,
	})
	if err != nil {
		<-looking.Done()
		return ctx.Err()
	}
	defer changes.Stop()
	select {
	case <-changes.ResultChan():
	case <-looking.Done():
	}
	return ctx.Err()
}
