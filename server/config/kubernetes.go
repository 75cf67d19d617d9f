package config

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"
)

// ProviderKubernetes runs sandboxes as pods of a cluster.
const ProviderKubernetes = "kubernetes"

// Kubernetes is what a pool of provider kubernetes needs beside the rest: its templates are images by the names
// that clients use. docs/kubernetes.md explains each.
type Kubernetes struct {
	// Kubeconfig is a file, and Context one in it; empty: the service account of the pod that Isthmus runs in, else
	// what kubectl would use.
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context"`
	// Namespace holds the sandboxes and nothing else; empty: isthmus-sandboxes.
	Namespace string `yaml:"namespace"`
	// EnvdImage holds envd; empty: it is copied into each pod, whose image then needs /bin/sh.
	EnvdImage string `yaml:"envd_image"`
	// Delivery is volume, init, built-in or copy, Reach address, port-forward or exec; empty: found by a probe.
	Delivery string `yaml:"delivery"`
	Reach    string `yaml:"reach"`
	// RuntimeClass runs the pods; isolation of the pool says what it stands for.
	RuntimeClass string `yaml:"runtime_class"`
	// StorageClass gives each sandbox a volume of its own, on which a pause keeps what was changed in its files; empty:
	// sandboxes cannot be paused.
	StorageClass string `yaml:"storage_class"`
	// PolicyProbe is IP:PORT outside the cluster that sandboxes reach while nothing forbids it: with it network policies
	// are tried when the pool is opened. Empty: rules for the network are refused.
	PolicyProbe string `yaml:"policy_probe"`
	// AgentSandbox makes sandboxes by claims of agent-sandbox, which the cluster must have, instead of pods: Warm is then
	// what its SandboxWarmPools keep ready, and all sandboxes have the sizes Default.
	AgentSandbox bool `yaml:"agent_sandbox"`
	// UserNamespace gives each pod user ids of its own; nodes must support it.
	UserNamespace bool `yaml:"user_namespace"`
	// AnyImage lets clients name an image as their template.
	AnyImage bool `yaml:"any_image"`
	// Default are the sizes of a template.
	Default Size `yaml:"default"`
	// Reserve is the share of a sandbox's sizes that the scheduler sets aside, above 0 to 1; 0 is 1.
	Reserve float64 `yaml:"reserve"`
	// PullPolicy is Always, IfNotPresent or Never; PullSecrets name secrets of the namespace.
	PullPolicy  string   `yaml:"pull_policy"`
	PullSecrets []string `yaml:"pull_secrets"`
	// Region is the value of topology.kubernetes.io/region that nodes must have; NodeSelector and Tolerations choose
	// them further.
	Region       string            `yaml:"region"`
	NodeSelector map[string]string `yaml:"node_selector"`
	Tolerations  []Toleration      `yaml:"tolerations"`
	// Schedule bounds the wait for a node with room; 0: 10s.
	Schedule time.Duration `yaml:"schedule"`
	// Warm is how many sandboxes are made ahead, by template name.
	Warm map[string]int `yaml:"warm"`
}

// Toleration is one of Kubernetes, with its words.
type Toleration struct {
	Key      string `yaml:"key"`
	Operator string `yaml:"operator"`
	Value    string `yaml:"value"`
	Effect   string `yaml:"effect"`
}

// empty reports whether nothing was said.
func (k Kubernetes) empty() bool { return fmt.Sprint(k) == fmt.Sprint(Kubernetes{}) }

// check looks at the settings of a pool of pods, or that another pool has none.
func (k Kubernetes) check(path string, p Pool) Faults {
	var faults Faults
	fault := func(when bool, field, format string, args ...any) {
		if when {
			faults = append(faults, Fault{path + field, fmt.Sprintf(format, args...)})
		}
	}
	if p.Provider != ProviderKubernetes {
		fault(!k.empty(), ".kubernetes", "is for pools of provider kubernetes")
		return faults
	}
	oneOf := func(field, text string, values ...string) {
		fault(text != "" && !slices.Contains(values, text), ".kubernetes."+field, "must be one of %v, not %q", values, text)
	}
	oneOf("delivery", k.Delivery, "volume", "init", "built-in", "copy")
	oneOf("reach", k.Reach, "address", "port-forward", "exec")
	oneOf("pull_policy", k.PullPolicy, "Always", "IfNotPresent", "Never")
	fault(k.Reserve < 0 || k.Reserve > 1, ".kubernetes.reserve", "must be above 0 and at most 1")
	if k.PolicyProbe != "" {
		_, err := netip.ParseAddrPort(k.PolicyProbe)
		fault(err != nil, ".kubernetes.policy_probe", "must be IP:PORT: %v", err)
	}
	fault(k.Schedule < 0, ".kubernetes.schedule", "must not be negative")
	fault(len(p.Templates) == 0 && !k.AnyImage, ".templates", "must name images, for example {base: registry.example/base:1}, or kubernetes.any_image be true")
	fault(k.EnvdImage == "" && slices.Contains([]string{"volume", "init"}, k.Delivery), ".kubernetes.envd_image", "is missing: delivery %s takes envd from it", k.Delivery)
	if k.AgentSandbox {
		const why = "does not go with agent_sandbox: a claim cannot take it"
		fault(k.StorageClass != "", ".kubernetes.storage_class", why)
		fault(k.PolicyProbe != "", ".kubernetes.policy_probe", why)
		fault(k.AnyImage, ".kubernetes.any_image", why)
		fault(k.Delivery == "copy", ".kubernetes.delivery", "copy does not go with agent_sandbox: name an envd_image, or have envd in the images (built-in)")
	}
	fault(p.Isolation == "" && k.RuntimeClass != "", ".isolation", "is missing: say what the runtime class %s stands for, for example gvisor or vm", k.RuntimeClass)
	fault(k.RuntimeClass == "" && p.Isolation != "" && p.Isolation != "container", ".isolation", "must be container where there is no kubernetes.runtime_class")
	for template, boxes := range k.Warm {
		fault(boxes < 0 || boxes > maxWarm, ".kubernetes.warm."+template, "must be between 0 and %d", maxWarm)
	}
	if k.Kubeconfig != "" {
		_, err := os.Stat(k.Kubeconfig)
		fault(err != nil, ".kubernetes.kubeconfig", "names a file that cannot be read: %s", err)
	}
	return faults
}
