package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/server/config"
)

func TestInitTLS(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	_, err := isthmus(t, "tls", "init", "--data", data)
	require.ErrorContains(t, err, "name the domain")
	_, err = isthmus(t, "tls", "init", "--data", data, "--domain", "No Name")
	require.ErrorContains(t, err, "domain: must be a host name")
	_, err = isthmus(t, "tls", "init", "--data", data, "--domain", "localhost:8443")
	require.ErrorContains(t, err, "isthmus.localhost:8443")
	require.NoDirExists(t, data)

	out := must(t, "tls", "init", "--data", data, "--domain", "sandbox.test")
	require.Contains(t, out, "made an authority and a certificate")
	require.Contains(t, out, "isthmus serve --domain sandbox.test")
	require.Contains(t, out, "export E2B_DOMAIN=sandbox.test\n")
	require.Contains(t, out, "NODE_EXTRA_CA_CERTS='"+filepath.Join(data, "tls", "ca.pem")+"'")
	require.Contains(t, out, "SSL_CERT_FILE='"+filepath.Join(data, "tls", "bundle.pem")+"'")
	require.NotContains(t, out, "key.pem", "nobody but the server needs a key")
	require.Contains(t, must(t, "tls", "init", "--data", data, "--domain", "sandbox.test"), "nothing to do")
	require.Contains(t, must(t, "tls", "init", "--data", data, "--domain", "sandbox.test", "--force"), "made an authority")
	must(t, "serve", "--check-config", "--data", data, "--domain", "sandbox.test:8443")
	_, err = isthmus(t, "serve", "--check-config", "--data", data, "--domain", "other.test")
	require.ErrorContains(t, err, "isthmus tls init --domain other.test")
}

func TestUseOwnCertificate(t *testing.T) {
	data := t.TempDir()
	own := config.TLS{Cert: filepath.Join(data, "tls", "cert.pem"), Key: filepath.Join(data, "tls", "key.pem")}
	other := config.TLS{Cert: "/etc/cert.pem", Key: "/etc/key.pem"}
	c := config.Config{Data: data, Domain: "sandbox.test"}
	require.NoError(t, useOwnCertificate(&c))
	require.Empty(t, c.TLS, "none was made")
	must(t, "tls", "init", "--data", data, "--domain", "sandbox.test")
	for name, row := range map[string]struct {
		domain     string
		have, want config.TLS
	}{
		"a domain":    {domain: "sandbox.test", want: own},
		"no domain":   {},
		"another one": {domain: "sandbox.test", have: other, want: other},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Config{Data: data, Domain: row.domain, TLS: row.have}
			require.NoError(t, useOwnCertificate(&c))
			require.Equal(t, row.want, c.TLS)
		})
	}
}
