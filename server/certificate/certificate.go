// Package certificate makes what TLS for a domain needs where no public authority can: an authority of its own
// and a wildcard certificate that it signs. They live in one folder, keys readable by their owner only.
package certificate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Lives, and how long before its end something is made anew. Clients have to be told of a new authority, so it
// lasts; browsers refuse certificates that last longer than 398 days.
const (
	authorityLife   = 10 * 365 * day
	certificateLife = 397 * day
	renewBefore     = 30 * day
	day             = 24 * time.Hour
)

// Files are the paths of what a folder holds.
type Files struct {
	// Authority is the certificate that clients must trust.
	Authority string
	// Bundle is the authority together with the system's own ones: what a client trusts that takes one file
	// instead of the system's. It is the authority alone where the system's file is not found.
	Bundle string
	// Certificate and Key are what the server serves with.
	Certificate, Key string

	authorityKey string
}

// In are the files of a folder, whether they exist or not.
func In(dir string) Files {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Files{
		Authority: at("ca.pem"), authorityKey: at("ca-key.pem"), Bundle: at("bundle.pem"),
		Certificate: at("cert.pem"), Key: at("key.pem"),
	}
}

// Made says which parts Make has made; what was still good is kept.
type Made struct {
	Authority, Certificate bool
}

// Make sees to it that a folder holds a certificate of the domain, its wildcard and localhost. The domain may
// carry a port. With force everything is made anew, the authority too, so that clients must be told of it
// again. It is safe to interrupt: a certificate and key that do not match are made anew by the next call.
func Make(dir, domain string, force bool, now time.Time) (Files, Made, error) {
	files, name := In(dir), host(domain)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files, Made{}, fmt.Errorf("the folder of certificates: %w", err)
	}
	var made Made
	authority, err := readIssuer(files, name, now)
	if err != nil || force {
		if authority, err = newIssuer(name, now); err != nil {
			return files, made, err
		}
		made.Authority = true
		if err := authority.write(files); err != nil {
			return files, made, err
		}
	}
	if made.Authority || !good(files, name, authority.certificate, now) {
		made.Certificate = true
		err = authority.issue(files, name, now)
	}
	return files, made, err
}

// ErrNone says that a folder holds no certificate.
var ErrNone = errors.New("there is no certificate")

// Find returns the files of a folder that holds a certificate of the domain that is valid now; ErrNone when it
// holds none, another error when it is not fit.
func Find(dir, domain string, now time.Time) (Files, error) {
	files := In(dir)
	certificate, err := readCertificate(files.Certificate)
	if errors.Is(err, fs.ErrNotExist) {
		return files, ErrNone
	}
	if err != nil {
		return files, err
	}
	if !covers(certificate, host(domain)) {
		return files, fmt.Errorf("the certificate %s is of %s, not of the domain %s: run `isthmus tls init --domain %s`",
			files.Certificate, strings.Join(certificate.DNSNames, ", "), host(domain), domain)
	}
	if now.After(certificate.NotAfter) {
		return files, fmt.Errorf("the certificate %s ended on %s: run `isthmus tls init --domain %s`",
			files.Certificate, certificate.NotAfter.Format(time.DateOnly), domain)
	}
	return files, nil
}

// host is a domain without its port.
func host(domain string) string {
	if name, _, err := net.SplitHostPort(domain); err == nil {
		return name
	}
	return domain
}

// names are what a certificate of a domain is for. The wildcard covers api.DOMAIN too, which is named for
// those who read the certificate.
func names(domain string) []string {
	all := []string{domain, "*." + domain, "api." + domain}
	if domain != "localhost" {
		all = append(all, "localhost")
	}
	return all
}

func covers(certificate *x509.Certificate, domain string) bool {
	for _, name := range []string{domain, "port-id." + domain} {
		if certificate.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}
