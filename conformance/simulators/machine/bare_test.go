//go:build linux

package machine_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/conformance/simulators/bare"
)

const port = 49980

// TestBootstrap runs the suite of providers on the smallest cloud, in the two forms that real ones have: it shows that
// our envd, brought by the bootstrap, lives in such a box as in any other.
func TestBootstrap(t *testing.T) {
	secrets := func(id string) (transport, control string) { return "transport of " + id, "control of " + id }
	for name, form := range map[string]func(*bare.Cloud) bootstrap.Bare{
		"one port":  func(c *bare.Cloud) bootstrap.Bare { return bare.OnePort{Cloud: c, Port: port} },
		"only exec": func(c *bare.Cloud) bootstrap.Bare { return bare.OnlyExec{Cloud: c} },
	} {
		t.Run(name, func(t *testing.T) {
			cloud := bare.New(open(t))
			reopen := func() (adapters.Provider, error) {
				return bootstrap.New(form(cloud), bootstrap.Config{
					Secrets: secrets, Port: port,
					Envd: func() (io.ReadCloser, error) { return os.Open(filepath.Join(os.Getenv(programs), "envd")) },
				}), nil
			}
			p, err := reopen()
			require.NoError(t, err)
			s, err := provider.Open(t.Context(), provider.Harness{Provider: p, Secrets: secrets, Reopen: reopen, AtOnce: 4, Soon: 10 * time.Second})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) }()
			for _, c := range s.Cases() {
				t.Run(c.Name, func(t *testing.T) { c.Run(t, s) })
			}
		})
	}
}
