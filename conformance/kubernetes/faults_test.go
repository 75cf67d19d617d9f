package kubernetes

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// create makes a sandbox by REST and returns its id. more are further fields of the request.
func (f *facade) create(more ...string) string {
	f.t.Helper()
	var made struct {
		SandboxID       string `json:"sandboxID"`
		EnvdAccessToken string `json:"envdAccessToken"`
	}
	status, text := f.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","timeout":600`+strings.Join(more, "")+`}`, &made)
	require.Equal(f.t, http.StatusCreated, status, text)
	f.token = made.EnvdAccessToken
	return made.SandboxID
}

// reads asks envd in a sandbox for a file, and returns the status.
func (f *facade) reads(id string) int {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.url+"/files?path=/etc/debian_version&username=root", nil)
	require.NoError(f.t, err)
	request.Header.Set("E2b-Sandbox-Id", id)
	request.Header.Set("E2b-Sandbox-Port", "49983")
	request.Header.Set("X-Access-Token", f.token)
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	require.NoError(f.t, err)
	require.NoError(f.t, response.Body.Close())
	return response.StatusCode
}

// gone waits until clients are told that the sandbox is gone, by both planes, and the record says why.
func (f *facade) gone(id, why string, within time.Duration) {
	f.t.Helper()
	began := time.Now()
	require.Eventually(f.t, func() bool {
		status, _ := f.call(http.MethodGet, "/sandboxes/"+id, "", nil)
		return status == http.StatusNotFound && f.reads(id) == http.StatusBadGateway
	}, within, 50*time.Millisecond, "clients are not told that %s is gone", id)
	took := time.Since(began).Round(10 * time.Millisecond)
	require.Eventually(f.t, func() bool {
		for line := range strings.SplitSeq(f.log.String(), "\n") {
			if strings.Contains(line, "sandbox ended") && strings.Contains(line, id) {
				return strings.Contains(line, why)
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond, "the record does not say %q:\n%s", why, f.log)
	fmt.Printf("%s: clients were told after %v\n", f.t.Name(), took)
}

// diskFull is the case that takes long: a kubelet looks at disks now and then.
const diskFull = "its disk is full"

// testPodsThatEnd ends pods in the ways of clusters.
func testPodsThatEnd(t *testing.T, c *cluster) {
	f := newFacade(t, c, "default: {cpu: 1, memory_mb: 512, disk_mb: 128}")
	for _, end := range []struct {
		name, why string
		end       func(t *testing.T, id string)
	}{
		{"deleted by hand", "its pod was deleted", func(t *testing.T, id string) {
			require.NoError(t, c.core.Pods(c.namespace).Delete(t.Context(), id, metav1.DeleteOptions{}))
		}},
		{"evicted", "Eviction", func(t *testing.T, id string) {
			require.NoError(t, c.core.Pods(c.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: id}}))
		}},
		{"its first process is killed", "exit code 137", func(t *testing.T, id string) {
			require.NoError(t, syscall.Kill(first(t, c, id), syscall.SIGKILL))
		}},
		{"out of memory", "OOMKilled, exit code 137", func(t *testing.T, id string) {
			// Only cgroup v2 has the kernel kill all of a pod: here it is told to take the first process before the large one.
			score := fmt.Sprintf("/proc/%d/oom_score_adj", first(t, c, id))
			require.NoError(t, os.WriteFile(score, []byte("1000"), 0o644))
			f.begins(id, "echo 0 >/proc/self/oom_score_adj && exec tail /dev/zero")
		}},
		{diskFull, "Evicted: ", func(_ *testing.T, id string) {
			f.begins(id, "dd if=/dev/zero of=/srv/large bs=1M count=300 && exec sleep 600")
		}},
	} {
		if os.Getenv("ISTHMUS_TEST") == "soak" && end.name == diskFull {
			fmt.Println("not in the gate, but in make test-kubernetes: a pod that is evicted because", end.name)
			continue
		}
		t.Run(end.name, func(t *testing.T) {
			id := f.create()
			require.Equal(t, http.StatusOK, f.reads(id))
			end.end(t, id)
			within := time.Minute
			if end.name == diskFull {
				within = 3 * time.Minute
			}
			f.gone(id, end.why, within)
		})
	}
	require.Eventually(t, func() bool { return len(c.pods(t)) == 0 }, time.Minute, 100*time.Millisecond, "pods were left")
}

// testServerAway takes the API server away for a while: sandboxes serve on, creates fail typed, nothing is left.
func testServerAway(t *testing.T, c *cluster) {
	f := newFacade(t, c)
	id := f.create()
	away := 10 * time.Second // below the grace of a node, whose news is not heard either
	if os.Getenv("ISTHMUS_TEST") == "all" {
		away = time.Minute
	}
	bring := hold(t, "apiserver", "kube-apiserver")
	fmt.Printf("%s: the API server is away for %v\n", t.Name(), away)
	for end := time.Now().Add(away); time.Now().Before(end); time.Sleep(time.Second) { // the time is what is tried
		require.Equal(t, http.StatusOK, f.reads(id), "a running sandbox does not serve while the API server is away")
	}
	status, text := f.call(http.MethodPost, "/sandboxes/"+id+"/timeout", `{"timeout":900}`, nil)
	require.Equal(t, http.StatusNoContent, status, text)
	status, text = f.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base"}`, nil)
	require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status, text)
	bring()
	require.Eventually(t, func() bool {
		status, _ := f.call(http.MethodPost, "/v2/sandboxes", `{"templateID":"base","timeout":600}`, nil)
		return status == http.StatusCreated
	}, 2*time.Minute, time.Second, "creates do not work again")
	require.Equal(t, http.StatusOK, f.reads(id), "the sandbox is gone")
	out, err := f.isthmus("sandboxes", "kill", "--all")
	require.NoError(t, err, out)
	require.Eventually(t, func() bool { return len(c.pods(t)) == 0 }, 2*time.Minute, 100*time.Millisecond, "pods were left")
}

// testNodeLost stops the kubelet: the sandbox serves on, and once the cluster has given the node up, clients are told.
func testNodeLost(t *testing.T, c *cluster) {
	fakeNode(t, c) // where all nodes are lost, a cluster gives none up
	f := newFacade(t, c, "node_selector: {kubernetes.io/hostname: node1}")
	id := f.create()
	bring := hold(t, "kubelet", "kubelet")
	require.Equal(t, http.StatusOK, f.reads(id), "a sandbox without its kubelet does not serve")
	f.gone(id, "DeletionByTaintManager", 3*time.Minute)
	bring()
	require.Eventually(t, func() bool { return len(c.pods(t)) == 0 }, 2*time.Minute, 100*time.Millisecond, "pods were left")
}

// hold ends a program of the node and keeps it from being started again until the function is called.
func hold(t *testing.T, name, program string) (bring func()) {
	t.Helper()
	file := holdOf(name)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	bring = func() { _ = os.Remove(file) }
	t.Cleanup(bring)
	for _, pid := range processes(t, func(args []string) bool {
		return len(args) > 1 && filepath.Base(args[0]) == "kubeall" && args[1] == program || args[0] == program
	}) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	return bring
}

// holdOf is the file that keeps a program of the node from being started. The cluster's folder holds its kubeconfig's.
func holdOf(name string) string {
	return filepath.Join(filepath.Dir(os.Getenv(kubeconfig)), "..", "run", name+".hold")
}

// first is the first process in the container of a pod, as this machine numbers it.
func first(t *testing.T, c *cluster, id string) int {
	t.Helper()
	pod, err := c.core.Pods(c.namespace).Get(t.Context(), id, metav1.GetOptions{})
	require.NoError(t, err)
	for _, pid := range processes(t, isEnvd) {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err == nil && strings.Contains(string(groups), string(pod.UID)) {
			return pid
		}
	}
	require.Fail(t, "the pod has no first process", id)
	return 0
}

// isEnvd reports whether a process is envd in a pod.
func isEnvd(args []string) bool {
	return len(args) > 2 && args[0] == "/opt/isthmus/envd" && args[1] == "wait"
}

// processes are those of this machine whose arguments are wanted.
func processes(t *testing.T, wanted func(args []string) bool) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var found []int
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil && wanted(strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")) {
			found = append(found, pid)
		}
	}
	return found
}
