package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	networkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	nodev1 "k8s.io/client-go/kubernetes/typed/node/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

// qps and burst are what the client allows itself: the API server has its own fairness (priority levels), and a
// create is a handful of calls.
const (
	qps   = 200
	burst = 400
)

// restoreTime bounds the wait for an envd that may bring back what a pause kept.
const restoreTime = 90 * time.Second

// Cluster is one pool: a namespace of a cluster. It is safe for concurrent use.
type Cluster struct {
	config   Config
	log      *slog.Logger
	core     *corev1.CoreV1Client
	node     *nodev1.NodeV1Client
	net      *networkingv1.NetworkingV1Client
	agents   *dynamic.DynamicClient
	follow   *follow
	findings Findings
	reach    Reach
	delivery Delivery
	settle   time.Duration // what a change of a policy is given that does not show
	forwards forwards

	shelving sync.Mutex
	shelved  map[string]bool // the templates whose SandboxTemplate and SandboxWarmPool are as configured

	stop    context.CancelFunc
	working sync.WaitGroup
}

// Provider is a cluster with envd in its pods, and what was found out about it.
type Provider struct {
	*bootstrap.Provider
	cluster *Cluster
}

// Open looks what the cluster is and how its pods can be reached, which makes pods of its own for a moment, and
// begins to watch. The provider must be run or closed.
func Open(ctx context.Context, config Config) (*Provider, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	c, err := connect(config)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.working.Go(func() { c.follow.run(watching) })
	if err := c.probe(ctx); err != nil {
		c.end()
		return nil, err
	}
	return &Provider{Provider: c.boots(), cluster: c}, nil
}

func connect(config Config) (*Cluster, error) {
	client := rest.CopyConfig(config.Client)
	client.QPS, client.Burst, client.UserAgent = qps, burst, "isthmus"
	c := &Cluster{config: config, log: config.Logger, reach: config.Reach, delivery: config.Delivery, shelved: map[string]bool{}}
	var err error
	if c.core, err = corev1.NewForConfig(client); err == nil {
		c.node, err = nodev1.NewForConfig(client)
	}
	if err == nil {
		c.net, err = networkingv1.NewForConfig(client)
	}
	if err == nil {
		c.agents, err = dynamic.NewForConfig(client)
	}
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInvalid, err, "the access to the cluster is not usable: "+err.Error())
	}
	c.config.Client = client
	c.follow = newFollow(c)
	return c, nil
}

// boots is the cluster with envd in its pods, by the way to them that was chosen.
func (c *Cluster) boots() *bootstrap.Provider {
	settings := bootstrap.Config{Secrets: c.config.Secrets, Waits: true, Path: envdPath, Socket: loopback(envdPort), Logger: c.log}
	if c.keeps() {
		settings.Ready = restoreTime
	}
	if c.config.AgentSandbox {
		settings.Born = func(spec adapters.Spec) string { return bornAs(spec.Template.Name) }
	}
	switch c.reach {
	case ReachExec:
		return bootstrap.New(c, settings)
	case ReachForward:
		return bootstrap.New(forwarded{c}, settings)
	}
	return bootstrap.New(addressed{c}, settings)
}

// Powers are those of the cluster, and of envd in its pods.
func (p *Provider) Powers() adapters.Powers {
	found := p.Provider.Powers()
	if !p.cluster.keeps() {
		found.Pauser = nil
	}
	if !p.cluster.enforces() {
		found.Networker = nil
	}
	if p.cluster.config.AgentSandbox {
		found.Stocker = nil // its SandboxWarmPools do that
	}
	return found
}

// Create makes a box, and returns when its network is seen to be what was asked for.
func (p *Provider) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	box, err := p.Provider.Create(ctx, spec)
	if err != nil || open(spec.Network) {
		return box, err
	}
	if err := p.cluster.obeyed(ctx, spec.BoxID, spec.Network); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		if left := p.Destroy(clean, spec.BoxID); left != nil {
			return adapters.Box{}, adapters.Wrap(adapters.KindUnknownOutcome, errors.Join(err, left), "the sandbox's network is not followed, and it could not be removed yet")
		}
		return adapters.Box{}, err
	}
	return box, nil
}

// Run watches until ctx ends, and lets go of the pods.
func (c *Cluster) Run(ctx context.Context) error {
	if c.config.AgentSandbox {
		c.working.Go(func() { c.shelveAll(ctx) })
	}
	<-ctx.Done()
	c.end()
	return nil
}

func (c *Cluster) end() {
	c.stop()
	c.forwards.close()
	c.working.Wait()
}

// Close ends what Open began, where Run was not called. Pods stay.
func (p *Provider) Close() error {
	p.cluster.end()
	return nil
}

// Findings are what Open found out.
func (p *Provider) Findings() Findings { return p.cluster.findings }
