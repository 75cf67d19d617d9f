package server

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/server/config"
)

func TestWhereNamesAnOwnAuthority(t *testing.T) {
	data := t.TempDir()
	listening := &net.TCPAddr{IP: net.IPv4zero, Port: 443}
	c := config.Config{Data: data, Domain: "a.test", TLS: config.TLS{Cert: filepath.Join(data, "tls", "cert.pem"), Key: "k"}}
	where := Where(c, listening)
	require.Equal(t, filepath.Join(data, "tls", "ca.pem"), where.Authority)
	require.Equal(t, filepath.Join(data, "tls", "bundle.pem"), where.Bundle)
	c.TLS.Cert = "/etc/cert.pem"
	require.Empty(t, Where(c, listening).Authority, "a public authority is known to everybody")
}
