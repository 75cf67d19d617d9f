package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	adapter "github.com/isthmus/isthmus/adapters/kubernetes"
	"github.com/isthmus/isthmus/conformance/provider"
)

// testNetwork tries rules for the network: on a cluster that does not enforce policies, which the probe sees and the pool
// says, and on the same one with an engine that does.
func testNetwork(t *testing.T, c *cluster) {
	out := outside(t)
	probed := func(config *adapter.Config) { config.PolicyProbe = out.First }
	t.Run("nothing enforces policies", func(t *testing.T) { networkRefused(t, c, probed) })
	enforce(t)
	t.Run("over REST", func(t *testing.T) { networkByREST(t, access(t), out) })
	open := func() (adapters.Provider, error) { return adapter.Open(t.Context(), c.pool(probed)) }
	p, err := adapter.Open(t.Context(), c.pool(probed))
	require.NoError(t, err)
	require.True(t, p.Findings().Policies, "%+v", p.Findings())
	suite, err := provider.Open(t.Context(), provider.Harness{
		Provider: p, Secrets: secrets, Reopen: open, AtOnce: 4, Soon: 12 * time.Second, Patience: time.Minute, Outside: out,
		Resources: adapters.Resources{CPU: 1, MemoryMB: 256, DiskMB: 512},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, suite.Close(context.WithoutCancel(t.Context()))) }()
	for _, one := range suite.Cases() {
		for _, word := range []string{"network", "internet", "addresses", "blocked", "lists", "what it says"} {
			if strings.Contains(one.Name, word) {
				t.Run(one.Name, func(t *testing.T) { one.Run(t, suite) })
				break
			}
		}
	}
}

// networkRefused looks that a pool which was seen not to keep policies refuses rules by name, and leaves no object.
func networkRefused(t *testing.T, c *cluster, probed func(*adapter.Config)) {
	p, err := adapter.Open(t.Context(), c.pool(probed))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.False(t, p.Findings().Policies)
	require.Contains(t, strings.Join(p.Findings().Tried, "; "), "the cluster does not enforce policies")
	require.Nil(t, adapters.PowersOf(p).Networker)
	require.False(t, adapters.CapabilitiesOf(p).Has(adapters.FeatureInternetOff))
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	_, err = p.Create(t.Context(), adapters.Spec{BoxID: "refused00000000000001", Template: template, Resources: template.Resources})
	require.Equal(t, adapters.KindUnsupported, adapters.KindOf(err))
	require.ErrorContains(t, err, "not known to enforce network policies")
}

// networkByREST takes the internet away from a sandbox, and gives a part of it back while it runs.
func networkByREST(t *testing.T, c *cluster, out *provider.Outside) {
	f := newFacade(t, c, "policy_probe: "+out.First.String())
	fetches := func(id string, address netip.AddrPort) string {
		return f.says(id, "/bin/bash", "-c", fmt.Sprintf("curl -s -o /dev/null -m 2 http://%s/; echo $?", address))
	}
	const answered, dropped = "0\n", "28\n"
	id := f.create(`,"allow_internet_access":false`)
	require.Equal(t, dropped, fetches(id, out.First))
	change := func(body string) {
		t.Helper()
		status, text := f.call(http.MethodPut, "/sandboxes/"+id+"/network", body, nil)
		require.Equal(t, http.StatusNoContent, status, text)
	}
	began := time.Now()
	change(fmt.Sprintf(`{"allow_internet_access":true,"denyOut":["%s/32"]}`, out.Second.Addr()))
	fmt.Printf("a change of the network took %v\n", time.Since(began).Round(time.Millisecond))
	require.Equal(t, answered, fetches(id, out.First))
	require.Equal(t, dropped, fetches(id, out.Second))
	status, text := f.call(http.MethodPut, "/sandboxes/"+id+"/network", `{"allow_internet_access":false,"allowOut":["example.com"]}`, nil)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "allow_domains")
	require.Equal(t, dropped, fetches(id, out.Second), "a change that was refused changed something")
	status, text = f.call(http.MethodDelete, "/sandboxes/"+id, "", nil)
	require.Equal(t, http.StatusNoContent, status, text)
}

// enforce has the cluster enforce policies until the case ends.
func enforce(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Remove(holdOf("policy")))
	t.Cleanup(func() {
		require.NoError(t, os.WriteFile(holdOf("policy"), nil, 0o600))
		for _, pid := range processes(t, func(args []string) bool { return len(args) == 4 && args[0] == "policy" }) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	})
}

// outside are two HTTP servers of this machine at addresses (RFC 5737) that pods reach.
func outside(t *testing.T) *provider.Outside {
	t.Helper()
	ip := func(args ...string) {
		t.Helper()
		text, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %v: %s", args, text)
	}
	ip("-n", "isthmuskube", "route", "add", "192.0.2.0/24", "via", "10.99.0.1")
	t.Cleanup(func() { ip("-n", "isthmuskube", "route", "del", "192.0.2.0/24") })
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	t.Cleanup(func() { _ = server.Close() })
	listen := func(address string) netip.AddrPort {
		ip("addr", "add", address+"/32", "dev", "ikube0")
		t.Cleanup(func() { ip("addr", "del", address+"/32", "dev", "ikube0") })
		l, err := net.Listen("tcp", address+":0")
		require.NoError(t, err)
		go func() { _ = server.Serve(l) }()
		return netip.MustParseAddrPort(l.Addr().String())
	}
	return &provider.Outside{First: listen("192.0.2.71"), Second: listen("192.0.2.72")}
}
