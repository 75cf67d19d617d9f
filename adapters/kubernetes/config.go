package kubernetes

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus/isthmus/adapters"
)

// Reach is a way to envd in a pod.
type Reach string

// The ways, in the order in which they are tried.
const (
	ReachAddress Reach = "address"      // connections to the pod's address
	ReachForward Reach = "port-forward" // streams of pods/portforward
	ReachExec    Reach = "exec"         // one program of pods/exec
)

// Delivery is how envd gets into a pod.
type Delivery string

// The ways, in the order in which they are tried where an image with envd is configured.
const (
	DeliverVolume  Delivery = "volume"   // its image is mounted (feature ImageVolume, and a runtime that lets it be executed)
	DeliverInit    Delivery = "init"     // an init container of its image copies it into an emptyDir
	DeliverBuiltIn Delivery = "built-in" // the template's image has it at /opt/isthmus/envd
	DeliverCopy    Delivery = "copy"     // it is sent through pods/exec; the template's image needs /bin/sh
)

// Config is one pool.
type Config struct {
	// Client says where the cluster is and who we are there.
	Client *rest.Config
	// Namespace holds the pods. It should hold nothing else.
	Namespace string
	// Secrets derives the two secrets of a box from its id, as the fleet does.
	Secrets func(boxID string) (transport, control string)
	// Templates are the images, by the names that clients use.
	Templates map[string]string
	// AnyImage lets clients name an image as the template.
	AnyImage bool
	// Default are the sizes of a template, Max the largest; zero fields of Max: no bound of ours.
	Default, Max adapters.Resources
	// Reserve is the share of a box's sizes that is requested of the scheduler, above 0 to 1; 0 is 1.
	Reserve float64
	// MaxLife is the longest life of a box, 24h when it is 0. The cluster ends a pod 10 minutes after it.
	MaxLife time.Duration

	// EnvdImage is the image that holds envd; empty: it is copied in.
	EnvdImage string
	// Delivery and Reach are used as they are; empty: found by a probe.
	Delivery Delivery
	Reach    Reach
	// PullPolicy and PullSecrets are for all images.
	PullPolicy  corev1.PullPolicy
	PullSecrets []string

	// RuntimeClass runs the pods; empty: the cluster's own. Isolation is the level that it stands for.
	RuntimeClass, Isolation string
	// StorageClass gives each box a volume of its own, on which a pause keeps what was changed in the root file system;
	// empty: boxes cannot be paused.
	StorageClass string
	// PolicyProbe is an address outside the cluster that boxes reach while nothing forbids it. With it network policies
	// are tried when the pool is opened, and what was seen to be kept is offered. Zero: none is made.
	PolicyProbe netip.AddrPort
	// UserNamespace gives each pod user ids of its own (hostUsers: false).
	UserNamespace bool
	// AgentSandbox makes boxes by SandboxClaims of agent-sandbox, from SandboxTemplates and SandboxWarmPools that are made
	// of Templates; Warm is how many pods the latter keep ready, by template name. It goes without StorageClass,
	// PolicyProbe, AnyImage and DeliverCopy, and all boxes have the sizes Default.
	AgentSandbox bool
	Warm         map[string]int
	// Region is required of nodes and reported; NodeSelector and Tolerations are added to pods.
	Region       string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Schedule bounds the wait for a node, 0: 10 s. A cluster that grows on demand wants more.
	Schedule time.Duration
	// Logger gets what happens in the background; nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultLife     = 24 * time.Hour
	defaultSchedule = 10 * time.Second
	// lifeMargin is how long after the longest life the cluster itself ends a pod.
	lifeMargin = 10 * time.Minute
)

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "isthmus-sandboxes")
	c.Default = adapters.Resources{
		CPU: cmp.Or(c.Default.CPU, 2), MemoryMB: cmp.Or(c.Default.MemoryMB, 1024), DiskMB: cmp.Or(c.Default.DiskMB, 10*1024),
	}
	c.Reserve = cmp.Or(c.Reserve, 1)
	c.MaxLife = cmp.Or(c.MaxLife, defaultLife)
	c.Schedule = cmp.Or(c.Schedule, defaultSchedule)
	c.PullPolicy = cmp.Or(c.PullPolicy, corev1.PullIfNotPresent)
	c.Isolation = cmp.Or(c.Isolation, "container")
	if c.EnvdImage == "" && c.Delivery == "" {
		c.Delivery = DeliverCopy
		if c.AgentSandbox {
			c.Delivery = DeliverBuiltIn
		}
	}
	if c.AgentSandbox {
		c.Max = c.Default
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check refuses what cannot be meant.
func (c Config) check() error {
	fault := func(format string, args ...any) error { return adapters.Errorf(adapters.KindInvalid, format, args...) }
	switch {
	case c.Client == nil || c.Secrets == nil:
		return fault("a kubernetes pool needs a cluster and the secrets of its boxes")
	case len(c.Templates) == 0 && !c.AnyImage:
		return fault("a kubernetes pool needs templates, or any_image: true")
	case c.Reserve <= 0 || c.Reserve > 1:
		return fault("reserve must be above 0 and at most 1")
	case c.EnvdImage == "" && (c.Delivery == DeliverVolume || c.Delivery == DeliverInit):
		return fault("delivery %s needs envd_image", c.Delivery)
	case c.AgentSandbox && (c.StorageClass != "" || c.PolicyProbe.IsValid() || c.AnyImage || c.Delivery == DeliverCopy):
		return fault("agent_sandbox does not go with storage_class, policy_probe, any_image or delivery copy: a claim cannot take them")
	}
	return nil
}
