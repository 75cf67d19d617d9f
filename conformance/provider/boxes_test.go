//go:build linux

package provider_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/adapters/fault"
	"github.com/isthmus/isthmus/conformance/boxes"
	"github.com/isthmus/isthmus/conformance/provider"
)

// TestBoxes runs the suite on places that know nothing of envd and offer little.
func TestBoxes(t *testing.T) {
	const port = 49980
	for name, form := range map[string]func(*boxes.Cloud) bootstrap.Bare{
		"one port by URL":    func(c *boxes.Cloud) bootstrap.Bare { return boxes.OnePort{Cloud: c, Port: port} },
		"one port by dialer": func(c *boxes.Cloud) bootstrap.Bare { return boxes.OnePort{Cloud: c, Port: port, Dialer: true} },
		"only exec":          func(c *boxes.Cloud) bootstrap.Bare { return boxes.OnlyExec{Cloud: c} },
	} {
		t.Run(name, func(t *testing.T) {
			cloud := boxes.New(t.TempDir(), root(t))
			defer func() { require.NoError(t, cloud.Close()) }()
			open := func() (adapters.Provider, error) {
				p := bootstrap.New(form(cloud), bootstrap.Config{Secrets: secrets, Port: port, Envd: envdProgram})
				return fault.New(p, fault.Plan{}) // a wrapper that does nothing takes nothing away
			}
			p, err := open()
			require.NoError(t, err)
			run(t, provider.Harness{Provider: p, Secrets: secrets, Reopen: open, AtOnce: 4})
		})
	}
}

// envdProgram opens the binary that TestMain built.
func envdProgram() (io.ReadCloser, error) { return os.Open(os.Getenv(envEnvd)) }
