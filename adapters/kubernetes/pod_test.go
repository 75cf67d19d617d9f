package kubernetes

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// A pod is readable by many: nothing in it may be a secret, and nothing in it may reach beyond it.
func TestPodsHoldNoSecretsAndNoPowers(t *testing.T) {
	config := Config{Secrets: func(id string) (string, string) { return "transport-" + id, "control-" + id }}.withDefaults()
	for _, delivery := range []Delivery{DeliverVolume, DeliverInit, DeliverBuiltIn, DeliverCopy} {
		c := &Cluster{config: config, delivery: delivery, reach: ReachAddress}
		pod := c.pod(adapters.Spec{
			BoxID: "box", Deployment: "d", TeamID: "a team with spaces", Template: adapters.Template{ID: "t", Name: "base"},
			Resources: adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 2048},
			Envd:      envd.Config{SandboxID: "box", Transport: "transport-box", Control: "control-box", AccessToken: "token", EnvVars: map[string]string{"A": "hidden"}, Deadline: time.Now()},
		}, "image")
		text, err := json.Marshal(pod)
		require.NoError(t, err)
		for _, secret := range []string{"transport-box", "control-box", "token\"", "hidden"} {
			require.NotContains(t, string(text), secret, delivery)
		}
		require.False(t, *pod.Spec.AutomountServiceAccountToken)
		require.False(t, pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
		require.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
		require.Equal(t, int64((24*time.Hour + lifeMargin).Seconds()), *pod.Spec.ActiveDeadlineSeconds)
		for _, one := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			require.False(t, *one.SecurityContext.Privileged)
			require.Equal(t, []corev1.Capability{"ALL"}, one.SecurityContext.Capabilities.Drop)
		}
		for _, volume := range pod.Spec.Volumes {
			require.Nil(t, volume.HostPath)
		}
		require.Equal(t, "2", pod.Spec.Containers[0].Resources.Limits.Cpu().String())
		require.Equal(t, "1Gi", pod.Spec.Containers[0].Resources.Limits.Memory().String())
	}
}
