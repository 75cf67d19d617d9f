package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/stdio"
)

const (
	// probeTime bounds one way that is tried, probeLife is when a probe's pod ends by itself.
	probeTime = 45 * time.Second
	probeLife = 5 * time.Minute
	// reachTime bounds the try of one way to a pod: an address without a route does not answer at all.
	reachTime = 10 * time.Second
	// probeLabel is the deployment of probes: no facade lists it.
	probeLabel = "probe"
)

// Findings are what a pool was found to be, for people.
type Findings struct {
	Namespace string
	Delivery  Delivery
	Reach     Reach
	// Tried are the ways that did not work, with the reason.
	Tried []string
	// RuntimeClass and its handler; IsolationSeen: the isolation was verified from inside a pod.
	RuntimeClass, Handler string
	IsolationSeen         bool
	// Agents are the kinds of agent-sandbox that were found and are used, as RESOURCE.GROUP/VERSION.
	Agents []string
	// Policies: network policies were seen to be kept.
	Policies bool
	// Took is how long a pod took from its create until its envd answered.
	Took time.Duration
}

// probe finds out how envd gets into pods and is reached there, with a pod that ends afterwards.
func (c *Cluster) probe(ctx context.Context) error {
	c.findings = Findings{Namespace: c.config.Namespace, RuntimeClass: c.config.RuntimeClass}
	if err := c.mayList(ctx); err != nil {
		return err
	}
	if err := c.probeRuntime(ctx); err != nil {
		return err
	}
	if c.config.AgentSandbox {
		if err := c.probeAgents(ctx); err != nil {
			return err
		}
	}
	ways := []Delivery{DeliverVolume, DeliverInit}
	if c.config.Delivery != "" {
		ways = []Delivery{c.config.Delivery}
	}
	for _, way := range ways {
		c.delivery = way
		err := c.probeDelivery(ctx)
		if err == nil {
			c.findings.Delivery, c.findings.Reach = c.delivery, c.reach
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.findings.Tried = append(c.findings.Tried, fmt.Sprintf("envd by %s: %v", way, err))
	}
	return adapters.Errorf(adapters.KindUnavailable, "no sandbox can be started and reached in the namespace %s: %s",
		c.config.Namespace, strings.Join(c.findings.Tried, "; "))
}

// mayList waits until the watch stands, and says why it does not.
func (c *Cluster) mayList(ctx context.Context) error {
	if _, err := c.core.Pods(c.config.Namespace).List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: selector(labelDeployment, probeLabel)}); err != nil {
		return classify(ctx, err, "does not list pods in the namespace "+c.config.Namespace, false)
	}
	waiting, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), c.follow.informer.HasSynced) {
		return adapters.Errorf(adapters.KindCredentials, "the pods of the namespace %s cannot be watched: the role needs the verb watch", c.config.Namespace)
	}
	return nil
}

// probeRuntime looks that the runtime class is there: a pod that names one that is not is refused only when it is made.
func (c *Cluster) probeRuntime(ctx context.Context) error {
	if c.config.RuntimeClass == "" {
		return nil
	}
	class, err := c.node.RuntimeClasses().Get(ctx, c.config.RuntimeClass, metav1.GetOptions{})
	if absent(err) {
		return adapters.Errorf(adapters.KindInvalid, "the cluster has no runtime class %s: install it, or configure the pool without", c.config.RuntimeClass)
	}
	if err != nil {
		return classify(ctx, err, "does not tell the runtime class "+c.config.RuntimeClass, false)
	}
	c.findings.Handler = class.Handler
	return nil
}

// probeDelivery makes one pod and tries the ways to it.
func (c *Cluster) probeDelivery(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	image := c.config.EnvdImage
	for _, name := range slices.Sorted(maps.Keys(c.config.Templates)) {
		image = c.config.Templates[name] // the last one is as good as any
	}
	if image == "" {
		return errors.New("the pool needs a template, or an envd_image, for its probe")
	}
	began := time.Now()
	spec := c.probeSpec()
	undo, err := c.probeBox(ctx, spec, image)
	defer func() { err = errors.Join(err, undo()) }()
	if err != nil {
		return err
	}
	dial, err := c.probeReach(ctx, spec)
	if err != nil {
		return err
	}
	c.findings.Took = time.Since(began)
	if c.config.Isolation != "gvisor" && !c.config.PolicyProbe.IsValid() {
		return nil
	}
	if _, err := c.ask(ctx, spec, dial, http.MethodPut, envd.RouteConfigure, spec.Envd); err != nil {
		return err
	}
	if err := c.probeIsolation(ctx, spec, dial); err != nil {
		return err
	}
	return c.probePolicies(ctx, spec.BoxID)
}

// probeBox makes the probe's pod, and returns what removes it.
func (c *Cluster) probeBox(ctx context.Context, spec adapters.Spec, image string) (undo func() error, _ error) {
	nothing := func() error { return nil }
	if c.config.AgentSandbox {
		_, err := c.adopt(ctx, spec, image, 0)
		return func() error {
			return c.undone(ctx, nil, func(clean context.Context) error {
				return errors.Join(c.relinquish(clean, spec.BoxID), c.unshelve(clean, c.shelf(spec.Template.Name)))
			})
		}, err
	}
	made, err := c.post(ctx, spec, image)
	if err != nil {
		return nothing, err
	}
	if _, err = c.started(ctx, made); err == nil && c.delivery == DeliverCopy {
		err = c.carry(ctx, spec.BoxID)
	}
	return func() error { return c.undo(ctx, made, nil) }, err
}

func (c *Cluster) probeSpec() adapters.Spec {
	id := "probe" + strings.ToLower(rand.Text())[:16]
	template := adapters.Template{ID: probeLabel, Name: probeLabel}
	transport, control := c.config.Secrets(id)
	if c.config.AgentSandbox {
		template.Name = id // with a SandboxTemplate of its own
		transport, control = c.config.Secrets(bornAs(id))
	}
	return adapters.Spec{
		BoxID: id, Attempt: probeLabel, Deployment: probeLabel, TeamID: probeLabel,
		Template: template, Resources: adapters.Resources{CPU: 1, MemoryMB: 128, DiskMB: 128},
		Network: adapters.Network{Internet: true},
		Envd: envd.Config{
			SandboxID: probeLabel, TemplateID: probeLabel, Transport: transport, Control: control, DefaultUser: "root", Deadline: time.Now().Add(probeLife),
		},
	}
}

// dial opens connections to envd.
type dial func(ctx context.Context) (net.Conn, error)

// probeReach tries the ways to the pod, in their order, and keeps the first that works.
func (c *Cluster) probeReach(ctx context.Context, spec adapters.Spec) (dial, error) {
	ways := []Reach{ReachAddress, ReachForward, ReachExec}
	if c.config.Reach != "" {
		ways = []Reach{c.config.Reach}
	}
	var failures []string
	for _, way := range ways {
		open, err := c.probeWay(ctx, spec, way)
		if err == nil {
			c.reach = way
			c.findings.Tried = append(c.findings.Tried, failures...)
			return open, nil
		}
		failures = append(failures, fmt.Sprintf("reach by %s: %v", way, cmp.Or(errors.Unwrap(err), err)))
	}
	return nil, adapters.Errorf(adapters.KindUnavailable, "%s", strings.Join(failures, "; "))
}

func (c *Cluster) probeWay(ctx context.Context, spec adapters.Spec, way Reach) (dial, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	open, _, err := c.open(ctx, spec.BoxID, way) // it ends with the probe's pod
	if err != nil {
		return nil, err
	}
	return open, c.waits(ctx, spec, open)
}

// open is a way to envd in a box; done lets go of it.
func (c *Cluster) open(ctx context.Context, boxID string, way Reach) (_ dial, done func(), _ error) {
	address := addressed{c}.Address
	switch way {
	case ReachExec:
		program, err := c.Exec(ctx, boxID, []string{envdPath, "stdio", "--to", loopback(envdPort)})
		if err != nil {
			return nil, nil, err
		}
		link, err := stdio.Open(ctx, program)
		if err != nil {
			return nil, nil, errors.Join(err, program.Close())
		}
		return link.Dial, func() { _ = link.Close() }, nil
	case ReachForward:
		address = forwarded{c}.Address
	}
	found, err := address(ctx, boxID)
	return found.Dial, func() {}, err
}
