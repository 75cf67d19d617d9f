// Command policy enforces the network policies of the test cluster: the engine of kube-network-policies as it is
// published, which decides over the first packet of each connection that the kernel queues for it. The rules that queue
// packets are made by cluster/node, because the engine's own need nft_queue, which not every kernel has.
// Usage: policy KUBECONFIG NODE QUEUE
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: policy KUBECONFIG NODE QUEUE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, node, queue string) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	number, err := strconv.Atoi(queue)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	known := informers.NewSharedInformerFactory(client, 0)
	engine, err := networkpolicy.NewController(client, known.Networking().V1().NetworkPolicies(), known.Core().V1().Namespaces(),
		known.Core().V1().Pods(), nil, nil, nil, nil, networkpolicy.Config{NodeName: node, QueueID: number})
	if err != nil {
		return err
	}
	known.Start(ctx.Done())
	return engine.Run(ctx)
}
