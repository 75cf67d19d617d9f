//go:build linux

package provider_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/daytona"
	"github.com/isthmus/isthmus/adapters/e2b"
	"github.com/isthmus/isthmus/adapters/modal"
	"github.com/isthmus/isthmus/adapters/vercel"
	"github.com/isthmus/isthmus/conformance/provider"
	modalsimulator "github.com/isthmus/isthmus/conformance/simulators/modal"
	"github.com/isthmus/isthmus/envd"
)

// hibernating is a state that no cloud has yet.
const hibernating = "hibernating"

// driftSpec is a box of the cases.
func driftSpec(t *testing.T, p adapters.Provider, id string) adapters.Spec {
	t.Helper()
	template, err := p.Resolve(t.Context(), "base")
	require.NoError(t, err)
	transport, control := secrets(id)
	return adapters.Spec{
		BoxID: id, Attempt: "attempt-of-" + id, Deployment: "drift", Template: template, Resources: adapters.Resources{CPU: 1, MemoryMB: 512},
		Network: adapters.Network{Internet: true},
		Envd:    envd.Config{SandboxID: id, Transport: transport, Control: control, DefaultUser: "root", Deadline: time.Now().Add(10 * time.Minute)},
	}
}

// TestDriftOfVercel has the simulated cloud answer what the adapter does not know.
func TestDriftOfVercel(t *testing.T) {
	account, twist := newVercelAccount(t, nearby{}), &twister{}
	server := httptest.NewServer(twist.around(account.Server))
	defer server.Close()
	account.config.APIURL, account.config.NoBake = server.URL+"/api", true
	p, err := vercel.New(account.config)
	require.NoError(t, err)
	spec := driftSpec(t, p, "drifting")
	drifting(t, p, []provider.Strange{
		{"a page for a sandbox", twist.spoil("POST", "/v3/sandboxes", page), making(spec), adapters.KindUnknownOutcome, "create", adapters.FeatureCreate},
		{"no tags", twist.spoil("GET", "/v2/sandboxes/drifting", change(func(a any) { field(a, nil, "sandbox", "tags") })),
			getting("drifting"), adapters.KindUnavailable, "get", adapters.FeatureFind},
		{"no list", twist.spoil("GET", "/v2/sandboxes", change(func(a any) { field(a, nil, "sandboxes") })), listing, adapters.KindUnavailable, "list", adapters.FeatureFind},
		{"a page for the end", twist.spoil("POST", "/extend-timeout", page), extending(spec), adapters.KindUnavailable, "extend", adapters.FeatureExtend},
		{"half a list", twist.spoil("GET", "/v2/sandboxes", cut(9)), copies, adapters.KindUnavailable, "snapshots", adapters.FeatureSnapshot},
		{"half a stream", twist.spoil("POST", "/cmd", cut(9)), starting("drifting"), adapters.KindUnavailable, "exec", adapters.FeatureExec},
		{"a page for the network", twist.spoil("POST", "/network-policy", page), func(ctx context.Context, p *adapters.Watched) error {
			return p.Powers().Networker.SetNetwork(ctx, "drifting", adapters.Network{})
		}, adapters.KindUnavailable, "set_network", adapters.FeatureLiveNetwork},
		{"a new status", twist.spoil("GET", "/v2/sandboxes/drifting", change(func(a any) { field(a, hibernating, "sandbox", "status") })),
			pausing("drifting"), adapters.KindUnknownOutcome, "pause", adapters.FeaturePause},
	})
	require.Empty(t, account.leftovers())
}

// TestDriftOfDaytona has the simulated cloud answer what the adapter does not know.
func TestDriftOfDaytona(t *testing.T) {
	twist := &twister{}
	_, address := openDaytona(t, nearby{}, nil, twist.around)
	place, err := daytona.New(daytona.Config{APIURL: address + "/api", Key: func() (string, error) { return "dtn_simulated", nil }})
	require.NoError(t, err)
	p := bootstrap.New(place, bootstrap.Config{Secrets: secrets, Envd: envdProgram})
	spec := driftSpec(t, p, "drifting")
	one := func(alter func(any)) func(context.CancelFunc) func() { // the adapter asks by the id of a sandbox, or its name
		return func(stop context.CancelFunc) func() {
			var stopped atomic.Bool
			var looks atomic.Int32
			twist.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
				switch {
				case r.Method == http.MethodPost && path[len(path)-1] == "stop":
					stopped.Store(true)
				case r.Method == http.MethodGet && len(path) == 2 && path[0] == "sandbox":
					if stopped.Load() && looks.Add(1) > 2 { // the looks before were read
						stop()
					}
					change(alter)(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			return func() { twist.set(nil) }
		}
	}
	drifting(t, p, []provider.Strange{
		{"a page for a sandbox", twist.spoil("POST", "/sandbox", page), making(spec), adapters.KindUnknownOutcome, "create", adapters.FeatureCreate},
		{"no labels", one(func(a any) { field(a, nil, "labels") }), getting("drifting"), adapters.KindUnavailable, "get", adapters.FeatureFind},
		{"no list", twist.spoil("GET", "/sandbox", change(func(a any) { field(a, nil, "items") })), listing, adapters.KindUnavailable, "list", adapters.FeatureFind},
		{"a page for the end", func(context.CancelFunc) func() {
			twist.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.Contains(r.URL.Path, "/ttl/") {
					page(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			return func() { twist.set(nil) }
		}, extending(spec), adapters.KindUnavailable, "extend", adapters.FeatureExtend},
		{"half a list", twist.spoil("GET", "/snapshots", cut(9)), copies, adapters.KindUnavailable, "snapshots", adapters.FeatureSnapshot},
		{"half an answer to a start", twist.spoil("POST", "/exec", cut(9)), starting("drifting"), adapters.KindUnavailable, "exec", adapters.FeatureExec},
		{"a page for the network", twist.spoil("POST", "/network-settings", page), func(ctx context.Context, p *adapters.Watched) error {
			return p.Powers().Networker.SetNetwork(ctx, "drifting", adapters.Network{})
		}, adapters.KindUnavailable, "set_network", adapters.FeatureLiveNetwork},
		{"a new state", one(func(a any) { field(a, hibernating, "state") }), pausing("drifting"), adapters.KindUnknownOutcome, "pause", adapters.FeaturePause},
	})
}

// TestDriftOfModal has the simulated cloud answer what the adapter does not know.
func TestDriftOfModal(t *testing.T) {
	s, err := modalsimulator.Start(modalsimulator.Config{Cloud: cloud(t, 0x53000000, nearby{})})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	twist := &twister{}
	front := unencrypted(t, twist, s.URL())
	place, err := modal.New(modal.Config{
		URL: front, TLS: s.TLS(), Key: func() (string, error) { return "ak-simulated:as-simulated", nil },
		Max: adapters.Resources{CPU: 4, MemoryMB: 4096, DiskMB: 20480},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, place.Close()) }()
	p := bootstrap.New(place, bootstrap.Config{Secrets: secrets, Envd: envdProgram, End: modal.EndPipe})
	answers := func(method string, alter func(proto.Message)) func(context.CancelFunc) func() {
		return func(context.CancelFunc) func() {
			s.Faults().Add(modalsimulator.Fault{Method: method, Change: alter})
			return s.Faults().Clear
		}
	}
	spec := driftSpec(t, p, "drifting")
	drifting(t, p, []provider.Strange{
		{"a page for a sandbox", twist.spoil("POST", "/SandboxCreateV2", page), making(spec), adapters.KindUnknownOutcome, "create", adapters.FeatureCreate},
		{"no tags", answers("SandboxListV2", func(m proto.Message) {
			for _, info := range m.(*pb.SandboxListResponse).GetSandboxes() {
				info.SetTags(nil)
			}
		}), listing, adapters.KindUnavailable, "list", adapters.FeatureFind},
		{"a new result", answers("SandboxWaitV2", func(m proto.Message) {
			m.(*pb.SandboxWaitResponse).SetResult(pb.GenericResult_builder{Status: 77}.Build())
		}), getting("drifting"), adapters.KindUnavailable, "get", adapters.FeatureFind},
		{"half a list", twist.spoil("POST", "/SandboxListV2", cut(9)), listing, adapters.KindUnavailable, "list", adapters.FeatureFind},
		{"a page for a list", twist.spoil("POST", "/ImageListTags", page), copies, adapters.KindUnavailable, "snapshots", adapters.FeatureSnapshot},
	})
}

// unencrypted passes HTTP/2 without TLS on to an address, with what the twister does to it.
func unencrypted(t *testing.T, twist *twister, address string) string {
	t.Helper()
	to, err := url.Parse(address)
	require.NoError(t, err)
	plain := &http.Protocols{}
	plain.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: plain}
	t.Cleanup(transport.CloseIdleConnections)
	pass := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewUnstartedServer(twist.around(pass))
	server.Config.Protocols = plain
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// TestDriftOfE2B has another Isthmus answer what the adapter does not know.
func TestDriftOfE2B(t *testing.T) {
	address := isthmus(t)
	to, err := url.Parse(address)
	require.NoError(t, err)
	twist := &twister{}
	server := httptest.NewServer(twist.around(httputil.NewSingleHostReverseProxy(to)))
	defer server.Close()
	p, err := e2b.New(e2b.Config{
		APIURL: server.URL, SandboxURL: address, Key: func() (string, error) { return innerKey, nil }, Templates: []e2b.Template{{Name: "base"}}, Isolation: "container",
	})
	require.NoError(t, err)
	spec := driftSpec(t, p, "drifting")
	drifting(t, p, []provider.Strange{
		{"a page for a sandbox", twist.spoil("POST", "/sandboxes", page), making(spec), adapters.KindUnknownOutcome, "create", adapters.FeatureCreate},
		{"no id", one(twist, change(func(a any) { field(a, nil, "sandboxID") })), getting("drifting"), adapters.KindUnavailable, "get", adapters.FeatureFind},
		{"a new state", one(twist, change(func(a any) { field(a, hibernating, "state") })), getting("drifting"), adapters.KindUnavailable, "get", adapters.FeatureFind},
		{"no metadata", twist.spoil("GET", "/v2/sandboxes", change(func(a any) {
			for _, one := range a.([]any) {
				field(one, nil, "metadata")
			}
		})), listing, adapters.KindUnavailable, "list", adapters.FeatureFind},
		{"a page for the end", twist.spoil("POST", "/timeout", page), extending(spec), adapters.KindUnavailable, "extend", adapters.FeatureExtend},
		{"half a log", twist.spoil("GET", "/logs", cut(9)), func(ctx context.Context, p *adapters.Watched) error {
			_, err := p.Powers().Journal.Entries(ctx, "drifting", 0)
			return err
		}, adapters.KindUnavailable, "entries", adapters.FeatureLogs},
	})
}

// one twists the answers about one sandbox.
func one(twist *twister, how func(http.ResponseWriter, *http.Request, http.Handler)) func(context.CancelFunc) func() {
	return func(context.CancelFunc) func() {
		twist.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") == 2 && strings.HasPrefix(r.URL.Path, "/sandboxes/") {
				how(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
		return func() { twist.set(nil) }
	}
}
