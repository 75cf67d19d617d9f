// Command kubeall is etcd and the programs of a Kubernetes node in one file, for the cluster of the tests: what they
// share is linked once. The first argument chooses the program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: kubeall etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kubectl|pki ARGUMENTS"))
	}
	os.Args = os.Args[1:]
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kubectl":                 cmd.NewDefaultKubectlCommand,
	}
	switch name := os.Args[0]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "pki" && len(os.Args) == 4:
		if err := writePKI(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fail(err)
		}
	case commands[name] != nil:
		os.Exit(cli.Run(commands[name]()))
	default:
		fail(fmt.Errorf("there is no program %q here, or its arguments are not these", name))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubeall:", err)
	os.Exit(1)
}
