package server

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/certificate"
	"github.com/isthmus/isthmus/server/config"
)

// Where says how clients find an Isthmus of this configuration that listens on this address. The API key is
// left out.
func Where(c config.Config, listening net.Addr) admin.Environment {
	domain := c.Domain
	if domain == "" {
		domain = localDomain(listening)
	}
	base := "http://" + reachable(listening)
	if c.TLS.Cert != "" {
		base = "https://" + domain
	}
	where := admin.Environment{APIURL: base, SandboxURL: base, Domain: domain}
	// Only the data folder's own certificate is of an authority that clients do not know.
	if own := certificate.In(filepath.Join(c.Data, "tls")); c.TLS.Cert == own.Certificate {
		where.Authority, where.Bundle = absolute(own.Authority), absolute(own.Bundle)
	}
	return where
}

// absolute is a path for clients, which are started anywhere.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// Mode says in one line which of the three ways to address sandboxes is on, and what it gives.
func Mode(c config.Config, where admin.Environment) string {
	switch {
	case c.Domain != "" && c.TLS.Cert != "":
		return fmt.Sprintf("sandboxes have host names below %s over TLS: E2B_DOMAIN=%s works alone, for every client", where.Domain, where.Domain)
	case c.Domain != "":
		return fmt.Sprintf("sandboxes have host names below %s, without TLS: clients need the URLs above, and http:// before getHost()", where.Domain)
	}
	return fmt.Sprintf("clients need the URLs above; http://PORT-ID.%s works in browsers and curl. "+
		"For https and clients that know host names only, set domain and tls", where.Domain)
}

// reachable is an address that a client on this machine can use: a listener on every address is reached by
// the loopback.
func reachable(listening net.Addr) string {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listening.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

func localDomain(listening net.Addr) string {
	_, port, _ := net.SplitHostPort(listening.String())
	return "localhost:" + port
}
