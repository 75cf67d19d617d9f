//go:build linux

package provider_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	sdk "github.com/modal-labs/modal-client/go"
	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/modal"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
	simulated "github.com/isthmus/isthmus/conformance/simulators/modal"
)

// TestModal runs the suite on a simulated Modal.
func TestModal(t *testing.T) {
	o := outside(t)
	s, err := simulated.Start(simulated.Config{Cloud: cloud(t, 0x53000000, o)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	open := func() (adapters.Provider, error) {
		m, err := modal.New(modal.Config{
			URL: s.URL(), TLS: s.TLS(), Key: func() (string, error) { return "ak-simulated:as-simulated", nil }, Envd: envdProgram,
			Max: adapters.Resources{CPU: 4, MemoryMB: 4096, DiskMB: 20480}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		return bootstrap.New(m, bootstrap.Config{Secrets: secrets, Envd: envdProgram, End: modal.EndPipe}), err
	}
	p, err := open()
	require.NoError(t, err)
	run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, Outside: o.Outside, AtOnce: 4, Soon: late, Simulated: true})
}

// TestModalOutboundPolicy has Modal's own SDK put headers into the requests of a sandbox, which are seen outside.
func TestModalOutboundPolicy(t *testing.T) {
	o := outside(t)
	s, err := simulated.Start(simulated.Config{Cloud: cloud(t, 0x54000000, o)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	t.Setenv("MODAL_SERVER_URL", s.URL())
	t.Setenv("MODAL_CONFIG_PATH", t.TempDir()+"/none.toml")
	client, err := sdk.NewClientWithOptions(&sdk.ClientParams{TokenID: "ak-simulated", TokenSecret: "as-simulated"})
	require.NoError(t, err)
	defer client.Close()
	app, err := client.Apps.FromName(t.Context(), "tests", &sdk.AppFromNameParams{CreateIfMissing: true})
	require.NoError(t, err)
	policy := func(value string) *sdk.ExperimentalOutboundPolicy {
		p := sdk.NewExperimentalOutboundPolicy(sdk.ExperimentalOutboundPolicyHeaderReplacement{
			Domain: "*.near.test", Headers: map[string]string{provider.EchoedHeader: value},
		})
		return &p
	}
	create := func(params *sdk.SandboxCreateParams) (*sdk.Sandbox, error) {
		return client.Sandboxes.Create(t.Context(), app, client.Images.FromRegistry("debian:12", nil), params)
	}
	box, err := create(&sdk.SandboxCreateParams{MemoryMiB: 256, ExperimentalOutboundPolicy: policy("cash $$5")})
	require.NoError(t, err)
	defer func() { _, _ = box.Terminate(context.WithoutCancel(t.Context()), nil) }()
	plain, secure := fmt.Sprintf("http://%s:%d/", o.FirstName, o.First.Port()), fmt.Sprintf("https://%s:%d/", o.FirstName, o.Secure.Port())
	heard := func(address ...string) string {
		p, err := box.Exec(t.Context(), append([]string{"curl", "-sS", "-m", "20"}, address...), nil)
		require.NoError(t, err)
		said, err := io.ReadAll(p.Stdout)
		require.NoError(t, err)
		code, err := p.Wait(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, code)
		return string(said)
	}
	require.Equal(t, "cash $5", heard(secure))
	require.Empty(t, heard(plain), "headers are put into HTTPS alone")
	require.NoError(t, box.ExperimentalUpdateOutboundPolicy(t.Context(), policy("another")))
	require.Equal(t, "another", heard(secure))
	require.NoError(t, box.ExperimentalUpdateOutboundPolicy(t.Context(), nil))
	require.Empty(t, heard("--insecure", secure), "the certificate is that of the server again, whom the box does not know")

	without, err := create(&sdk.SandboxCreateParams{MemoryMiB: 256})
	require.NoError(t, err)
	defer func() { _, _ = without.Terminate(context.WithoutCancel(t.Context()), nil) }()
	require.Error(t, without.ExperimentalUpdateOutboundPolicy(t.Context(), policy("late")), "it was made without a policy")
}

// cloud makes the boxes of a simulated cloud beside an outside, and looks that they leave nothing.
func cloud(t *testing.T, firstID uint32, world nearby) *machine.Cloud {
	t.Helper()
	root(t)
	folder, err := machine.Folder(imagesFolder(t))
	require.NoError(t, err)
	c, err := machine.New(t.Context(), machine.Config{
		Dir: t.TempDir() + "/cloud", Images: folder, EnvdPath: os.Getenv(envEnvd), SudoPath: os.Getenv(envSudo), FirstID: firstID,
		Resolvers: world.resolvers, Roots: world.roots,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
