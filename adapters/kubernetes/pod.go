package kubernetes

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

const (
	// container is the name of a pod's container.
	container = "sandbox"
	// envdVolume and envdFolder are where envd comes from; builtIn is where an image has its own.
	envdVolume = "envd"
	envdFolder = "/opt/isthmus"
	envdPath   = envdFolder + "/envd"
	// envdPort is the port on which envd answers the facade.
	envdPort = 49980
	// nodeGrace is how long a pod stays bound to a node that the cluster has lost, in seconds.
	nodeGrace = 10
	// endGrace is what a pod's processes have to end, in seconds: envd ends at once.
	endGrace = 1
)

// marks are the labels and annotations of a box.
func (c *Cluster) marks(spec adapters.Spec) (marks, notes map[string]string) {
	marks = map[string]string{
		labelManaged: managedBy, labelDeployment: value(spec.Deployment), labelBox: spec.BoxID, labelTemplate: spec.Template.ID,
	}
	if spec.Envd.SandboxID != "" {
		marks[labelSandbox], marks[labelTeam] = spec.Envd.SandboxID, value(spec.TeamID)
	}
	return marks, map[string]string{
		annotationAttempt: spec.Attempt, annotationImage: spec.Template.Name, annotationFit: fit(spec),
		annotationDeadline: stamp(spec.Envd.Deadline),
	}
}

// pod is the Pod of a box.
func (c *Cluster) pod(spec adapters.Spec, image string) *corev1.Pod {
	marks, notes := c.marks(spec)
	no, life := false, int64((c.config.MaxLife + lifeMargin).Seconds())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: spec.BoxID, Namespace: c.config.Namespace, Labels: marks, Annotations: notes},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{c.container(spec, image)}, RestartPolicy: corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, ActiveDeadlineSeconds: &life,
			TerminationGracePeriodSeconds: pointer(int64(endGrace)),
			SecurityContext:               &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			NodeSelector:                  c.nodes(), Tolerations: c.tolerations(), TopologySpreadConstraints: spread(),
		},
	}
	if c.config.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = &c.config.RuntimeClass
	}
	if c.config.UserNamespace {
		pod.Spec.HostUsers = &no
	}
	for _, name := range c.config.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	c.deliver(&pod.Spec)
	return pod
}

// container is the one of the template's image. Its first process is envd, as root: it starts programs as the
// users of the image. It has the capabilities that root in a box is used to, but none that reaches beyond it.
func (c *Cluster) container(spec adapters.Spec, image string) corev1.Container {
	_, control := c.config.Secrets(spec.BoxID)
	host := "127.0.0.1"
	if c.reach == ReachAddress || c.reach == "" {
		host = ""
	}
	command := []string{
		envdPath, "wait", "--control-sum", envd.ControlSum(control), "--listen", host + ":" + strconv.Itoa(envdPort),
		"--loopback", "127.0.0.1:" + strconv.Itoa(envd.Port), "--deadline", stamp(spec.Envd.Deadline),
	}
	if c.delivery == DeliverCopy {
		command = append([]string{"/bin/sh", "-c", `until [ -x "$0" ]; do sleep 0.1 || sleep 1; done; exec "$0" "$@"`}, command...)
	}
	most := resources(spec.Resources, 1)
	return corev1.Container{
		Name: container, Image: image, ImagePullPolicy: c.config.PullPolicy, Command: command, WorkingDir: "/",
		Resources: corev1.ResourceRequirements{Limits: most, Requests: resources(spec.Resources, c.config.Reserve)},
		SecurityContext: &corev1.SecurityContext{
			Privileged: pointer(false), RunAsUser: pointer(int64(0)), RunAsGroup: pointer(int64(0)),
			AllowPrivilegeEscalation: pointer(true), // sudo in the box
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{
				"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "SETFCAP", "NET_BIND_SERVICE", "SYS_CHROOT",
			}},
		},
	}
}

// deliver brings envd beside the template's image.
func (c *Cluster) deliver(spec *corev1.PodSpec) {
	volume, mount := corev1.Volume{Name: envdVolume}, corev1.VolumeMount{Name: envdVolume, MountPath: envdFolder}
	switch c.delivery {
	case DeliverBuiltIn:
		return
	case DeliverVolume:
		volume.Image, mount.ReadOnly = &corev1.ImageVolumeSource{Reference: c.config.EnvdImage, PullPolicy: c.config.PullPolicy}, true
	case DeliverInit:
		volume.EmptyDir, mount.ReadOnly = &corev1.EmptyDirVolumeSource{}, true
		spec.InitContainers = []corev1.Container{{
			Name: "envd", Image: c.config.EnvdImage, ImagePullPolicy: c.config.PullPolicy,
			Command:      []string{"/envd", "install", "--to", envdPath},
			VolumeMounts: []corev1.VolumeMount{{Name: envdVolume, MountPath: envdFolder}},
			SecurityContext: &corev1.SecurityContext{
				Privileged: pointer(false), AllowPrivilegeEscalation: pointer(false), RunAsUser: pointer(int64(0)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}}
	case DeliverCopy:
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	spec.Volumes = append(spec.Volumes, volume)
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, mount)
}

// resources are the sizes of a box as Kubernetes counts, or a share of them.
func resources(r adapters.Resources, share float64) corev1.ResourceList {
	part := func(n int, unit float64) int64 { return int64(math.Ceil(float64(n) * unit * share)) }
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(part(r.CPU, 1000), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(part(r.MemoryMB, 1<<20), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(part(r.DiskMB, 1<<20), resource.BinarySI),
	}
}

// nodes are those that may run the pods.
func (c *Cluster) nodes() map[string]string {
	chosen := map[string]string{}
	for name, wanted := range c.config.NodeSelector {
		chosen[name] = wanted
	}
	if c.config.Region != "" {
		chosen[corev1.LabelTopologyRegion] = c.config.Region
	}
	return chosen
}

// tolerations give a lost node up soon: its pods are then known to be gone.
func (c *Cluster) tolerations() []corev1.Toleration {
	all := append([]corev1.Toleration{}, c.config.Tolerations...)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		all = append(all, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: pointer(int64(nodeGrace)),
		})
	}
	return all
}

// spread keeps the boxes of all tenants apart over nodes and zones, as far as there is room.
func spread() []corev1.TopologySpreadConstraint {
	ours := &metav1.LabelSelector{MatchLabels: map[string]string{labelManaged: managedBy}}
	var all []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours,
		})
	}
	return all
}

// stamp writes a time as labels and arguments have it.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func pointer[V any](v V) *V { return &v }
