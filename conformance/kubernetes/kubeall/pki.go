package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// life is how long the certificates hold: the cluster is for one run.
const life = 7 * 24 * time.Hour

// authority signs the certificates of one cluster and writes them into a folder.
type authority struct {
	dir, server string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

// identity is whom a certificate is for: a user and a group of Kubernetes, or the names of a server.
type identity struct {
	name, group string
	hosts       []string
}

// writePKI makes what the programs of a cluster on one node trust each other by: certificates, kubeconfigs, and the
// keys of service account tokens.
func writePKI(dir, address, node string) error {
	a, err := newAuthority(dir, address)
	if err != nil {
		return err
	}
	servers := map[string]identity{
		"apiserver":                {name: "kube-apiserver", hosts: []string{address, "127.0.0.1", "10.96.0.1", "kubernetes.default.svc"}},
		"kubelet":                  {name: "system:node:" + node, group: "system:nodes", hosts: []string{node, address}},
		"apiserver-kubelet-client": {name: "kube-apiserver-kubelet-client", group: "system:masters"},
	}
	for file, who := range servers {
		if _, _, err := a.issue(file, who); err != nil {
			return err
		}
	}
	for user, who := range map[string]identity{
		"admin":              {name: "admin", group: "system:masters"},
		"controller-manager": {name: "system:kube-controller-manager"},
		"scheduler":          {name: "system:kube-scheduler"},
		"node":               {name: "system:node:" + node, group: "system:nodes"},
	} {
		if err := a.kubeconfig(user, who); err != nil {
			return err
		}
	}
	return a.serviceAccounts()
}

func newAuthority(dir, server string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, server: server, key: key, serial: time.Now().UnixNano()}
	template := a.template(identity{name: "isthmus-test-ca"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if err := a.writeKey("ca.key", key); err != nil {
		return nil, err
	}
	return a, a.write("ca.crt", block("CERTIFICATE", der))
}

func (a *authority) template(who identity) *x509.Certificate {
	a.serial++
	t := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: who.name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if who.group != "" {
		t.Subject.Organization = []string{who.group}
	}
	for _, host := range who.hosts {
		if address := net.ParseIP(host); address != nil {
			t.IPAddresses = append(t.IPAddresses, address)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

// issue writes FILE.crt and FILE.key, and returns them.
func (a *authority) issue(file string, who identity) (certificate, key []byte, err error) {
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, a.template(who), a.certificate, pair.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	certificate = block("CERTIFICATE", der)
	if key, err = keyBlock(pair); err != nil {
		return nil, nil, err
	}
	if err = a.write(file+".crt", certificate); err == nil {
		err = a.write(file+".key", key)
	}
	return certificate, key, err
}

func (a *authority) kubeconfig(user string, who identity) error {
	certificate, key, err := a.issue(user, who)
	if err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString
	return a.write(user+".kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: %[1]s}}]
clusters: [{name: test, cluster: {server: "https://%[2]s:6443", certificate-authority-data: %[3]s}}]
users: [{name: %[1]s, user: {client-certificate-data: %[4]s, client-key-data: %[5]s}}]
`, user, a.server, text(block("CERTIFICATE", a.certificate.Raw)), text(certificate), text(key)))
}

func (a *authority) serviceAccounts() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := a.writeKey("accounts.key", key); err != nil {
		return err
	}
	return a.write("accounts.pub", block("PUBLIC KEY", public))
}

func (a *authority) writeKey(file string, key crypto.PrivateKey) error {
	text, err := keyBlock(key)
	if err != nil {
		return err
	}
	return a.write(file, text)
}

func (a *authority) write(file string, content []byte) error {
	return os.WriteFile(filepath.Join(a.dir, file), content, 0o600)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func keyBlock(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return block("PRIVATE KEY", der), nil
}
