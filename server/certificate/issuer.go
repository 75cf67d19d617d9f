package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"
)

// backdated is how much earlier validity begins, for clients whose clock is behind.
const backdated = time.Hour

// issuer is an authority with its key.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newIssuer makes an authority. Whoever steals its key can speak for this domain and for localhost, and for
// nobody else: clients that trust it are told so by its name constraints.
func newIssuer(domain string, now time.Time) (*issuer, error) {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "Isthmus authority of " + domain},
		NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         slices.Compact([]string{domain, "localhost"}),
		PermittedIPRanges:           loopback(),
	}
	return sign(template, nil, now)
}

// loopback are this machine's own addresses, in both families.
func loopback() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
	}
}

// sign makes a key and a certificate for it; without an authority it signs itself.
func sign(template *x509.Certificate, by *issuer, now time.Time) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	const serialBits = 127 // positive in the 16 bytes that everybody takes
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, err
	}
	template.NotBefore = now.Add(-backdated)
	if by == nil {
		by = &issuer{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return &issuer{certificate, key}, err
}

// readIssuer reads an authority that can still sign for the domain.
func readIssuer(files Files, domain string, now time.Time) (*issuer, error) {
	pair, err := tls.LoadX509KeyPair(files.Authority, files.authorityKey)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the authority cannot sign")
	}
	switch {
	case !slices.Contains(pair.Leaf.PermittedDNSDomains, domain):
		return nil, errors.New("the authority is of another domain")
	case now.Add(certificateLife).After(pair.Leaf.NotAfter):
		return nil, errors.New("the authority ends before a new certificate would")
	}
	return &issuer{pair.Leaf, key}, nil
}

// write writes an authority and the bundle with it.
func (i *issuer) write(files Files) error {
	text := encode("CERTIFICATE", i.certificate.Raw)
	key, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return err
	}
	return errors.Join(
		replace(files.authorityKey, encode("PRIVATE KEY", key), secret),
		replace(files.Authority, text, public),
		replace(files.Bundle, append(text, systemRoots()...), public),
	)
}

// issue writes a certificate of the domain and its key.
func (i *issuer) issue(files Files, domain string, now time.Time) error {
	leaf, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: domain}, DNSNames: names(domain),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback},
		NotAfter:    now.Add(certificateLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i, now)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.key)
	if err != nil {
		return err
	}
	return errors.Join(
		replace(files.Key, encode("PRIVATE KEY", key), secret),
		replace(files.Certificate, encode("CERTIFICATE", leaf.certificate.Raw), public),
	)
}

// good says whether a folder's certificate can stay.
func good(files Files, domain string, authority *x509.Certificate, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	return err == nil && covers(pair.Leaf, domain) && pair.Leaf.CheckSignatureFrom(authority) == nil &&
		now.Add(renewBefore).Before(pair.Leaf.NotAfter)
}

// Modes of files.
const (
	secret = 0o600
	public = 0o644
)

// replace writes a file aside and renames it, so that a server that reads it meets the old or the new one.
func replace(path string, text []byte, mode os.FileMode) error {
	part := path + ".part"
	if err := os.WriteFile(part, text, mode); err != nil {
		return err
	}
	// The mode of a file that was left by an interrupted run is not changed by writing.
	return errors.Join(os.Chmod(part, mode), os.Rename(part, path))
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	return x509.ParseCertificate(block.Bytes)
}

// systemRoots is the text of the system's own authorities, or nothing.
func systemRoots() []byte {
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine, Arch
		"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora, RHEL
		"/etc/ssl/ca-bundle.pem",             // SUSE
		"/etc/ssl/cert.pem",                  // the BSDs, macOS
	} {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("BEGIN CERTIFICATE")) {
			return text
		}
	}
	return nil
}
