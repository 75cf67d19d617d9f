package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/server/config"
)

// probeTime bounds the look at a cluster when its pool is opened.
const probeTime = 3 * time.Minute

func openKubernetes(pool config.Pool, secrets func(boxID string) (transport, control string), log *slog.Logger) (*kubernetes.Provider, error) {
	k := pool.Kubernetes
	client, err := clusterAccess(k)
	if err != nil {
		return nil, err
	}
	var tolerations []corev1.Toleration
	for _, t := range k.Tolerations {
		tolerations = append(tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect),
		})
	}
	var policyProbe netip.AddrPort
	if k.PolicyProbe != "" {
		if policyProbe, err = netip.ParseAddrPort(k.PolicyProbe); err != nil {
			return nil, fmt.Errorf("policy_probe of the pool %s: %w", pool.Name, err)
		}
	}
	if log != nil {
		klog.SetSlogLogger(log) // the client library has one logger for the whole program
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	opened, err := kubernetes.Open(ctx, kubernetes.Config{
		Client: client, Namespace: k.Namespace, Templates: pool.Templates, AnyImage: k.AnyImage,
		Secrets: secrets,
		Default: k.Default.Resources(), Max: pool.Max.Resources(), Reserve: k.Reserve, MaxLife: pool.MaxLife,
		EnvdImage: k.EnvdImage, Delivery: kubernetes.Delivery(k.Delivery), Reach: kubernetes.Reach(k.Reach),
		PullPolicy: corev1.PullPolicy(k.PullPolicy), PullSecrets: k.PullSecrets,
		RuntimeClass: k.RuntimeClass, Isolation: pool.Isolation, UserNamespace: k.UserNamespace, StorageClass: k.StorageClass, PolicyProbe: policyProbe,
		AgentSandbox: k.AgentSandbox, Warm: k.Warm,
		Region: k.Region, NodeSelector: k.NodeSelector, Tolerations: tolerations, Schedule: k.Schedule, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	found := opened.Findings()
	if log != nil {
		log.Info("kubernetes pool", "pool", pool.Name, "namespace", found.Namespace, "reach", found.Reach, "delivery", found.Delivery,
			"runtime class", found.RuntimeClass, "agent-sandbox", strings.Join(found.Agents, ", "), "took", found.Took, "without", strings.Join(found.Tried, "; "))
	}
	return opened, nil
}

// clusterAccess is a file's, the pod's service account, or what kubectl would use.
func clusterAccess(k config.Kubernetes) (*rest.Config, error) {
	if k.Kubeconfig == "" && k.Context == "" {
		client, err := rest.InClusterConfig()
		if !errors.Is(err, rest.ErrNotInCluster) {
			return client, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Kubeconfig
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: k.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no access to a cluster: %w", err)
	}
	return client, nil
}

// clusters are the doctor's lines about pools of Kubernetes: what each is, and why a better way does not work.
func clusters(c config.Config) []finding {
	var lines []finding
	for _, pool := range c.AllPools() {
		if pool.Provider == config.ProviderKubernetes {
			lines = append(lines, cluster(pool))
		}
	}
	return lines
}

func cluster(pool config.Pool) finding {
	f := finding{what: "pool " + pool.Name, must: true, advice: "see docs/kubernetes.md"}
	key := rand.Text() // nobody comes back to what the doctor makes
	opened, err := openKubernetes(pool, func(boxID string) (string, string) { return key + "t" + boxID, key + "c" + boxID }, nil)
	if err != nil {
		f.detail, f.advice = "no sandbox can be made", err.Error()
		return f
	}
	found := opened.Findings()
	f.good = true
	f.detail = fmt.Sprintf("namespace %s, reached by %s, envd by %s, a first sandbox in %d ms", found.Namespace, found.Reach, found.Delivery, found.Took.Milliseconds())
	if found.RuntimeClass != "" {
		f.detail += fmt.Sprintf(", runtime class %s (%s)", found.RuntimeClass, found.Handler)
	}
	if len(found.Agents) > 0 {
		f.detail += ", claimed of agent-sandbox: " + strings.Join(found.Agents, ", ")
	}
	if len(found.Tried) > 0 {
		f.detail += "; what did not work: " + strings.Join(found.Tried, "; ")
	}
	if err := opened.Close(); err != nil {
		f.good, f.advice = false, err.Error()
	}
	return f
}
