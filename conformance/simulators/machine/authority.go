//go:build linux

package machine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"
)

// certified is how long certificates are good for: longer than any cloud here lives.
const certified = 30 * 24 * time.Hour

// authority makes certificates for the hosts that boxes speak to, when the cloud puts headers into their requests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu   sync.Mutex
	made map[string]*tls.Certificate
}

func newAuthority() (*authority, error) {
	a := &authority{made: map[string]*tls.Certificate{}}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the network of a simulated cloud"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certified),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

// pem is the certificate that boxes trust.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// of is the certificate of a host.
func (a *authority) of(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if made := a.made[host]; made != nil {
		return made, nil
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "simulated"}, DNSNames: []string{host},
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.made[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
	return a.made[host], nil
}
