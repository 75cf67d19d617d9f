package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const domain = "sandbox.example.com"

// remake is Make that goes well.
func remake(t *testing.T, dir, domain string, force bool, now time.Time) Made {
	t.Helper()
	_, made, err := Make(dir, domain, force, now)
	require.NoError(t, err)
	return made
}

func TestServesItsNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "tls")
	files, made, err := Make(dir, domain+":8443", false, time.Now())
	require.NoError(t, err)
	require.Equal(t, Made{Authority: true, Certificate: true}, made)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	for _, file := range []string{files.Authority, files.Bundle} {
		roots := x509.NewCertPool()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, roots.AppendCertsFromPEM(text))
		for name, trusted := range map[string]bool{
			domain: true, "api." + domain: true, "3000-i1." + domain: true, "localhost": true, "127.0.0.1": true,
			"a.b." + domain: false, "example.com": false, "other.example": false,
		} {
			connection, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
			if !trusted {
				require.Error(t, err, name)
				continue
			}
			require.NoError(t, err, name)
			require.NoError(t, connection.Close())
		}
	}
}

func TestAuthorityIsForTheDomainOnly(t *testing.T) {
	authority, err := newIssuer(domain, time.Now())
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	for name, trusted := range map[string]bool{domain: true, "1-i1." + domain: true, "localhost": true, "bank.example": false} {
		leaf, err := sign(&x509.Certificate{DNSNames: []string{name}, NotAfter: time.Now().Add(day)}, authority, time.Now())
		require.NoError(t, err)
		_, err = leaf.certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		require.Equal(t, trusted, err == nil, "%s: %v", name, err)
	}
	leaf, err := sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}, NotAfter: time.Now().Add(day)}, authority, time.Now())
	require.NoError(t, err)
	_, err = leaf.certificate.Verify(x509.VerifyOptions{Roots: roots})
	require.Error(t, err, "an address of another machine")
}

func TestWhatIsGoodStays(t *testing.T) {
	now := time.Now()
	broken := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	for name, c := range map[string]struct {
		domain string
		force  bool
		later  time.Duration
		change func(*testing.T, string)
		want   Made
	}{
		"nothing to do":             {domain: domain},
		"force":                     {domain: domain, force: true, want: Made{true, true}},
		"another domain":            {domain: "other.example", want: Made{true, true}},
		"the certificate ends soon": {domain: domain, later: certificateLife - renewBefore + time.Hour, want: Made{false, true}},
		"the authority ends soon":   {domain: domain, later: authorityLife - certificateLife + time.Hour, want: Made{true, true}},
		"no key":                    {domain: domain, change: broken("key.pem", ""), want: Made{false, true}},
		"no certificate":            {domain: domain, change: broken("cert.pem", "x"), want: Made{false, true}},
		"no authority's key":        {domain: domain, change: broken("ca-key.pem", ""), want: Made{true, true}},
		"another's authority": {domain: domain, want: Made{false, true}, change: func(t *testing.T, dir string) {
			other, err := newIssuer(domain, now)
			require.NoError(t, err)
			require.NoError(t, other.write(In(dir)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			remake(t, dir, domain, false, now)
			if c.change != nil {
				c.change(t, dir)
			}
			later := now.Add(c.later)
			require.Equal(t, c.want, remake(t, dir, c.domain, c.force, later))
			require.Equal(t, Made{}, remake(t, dir, c.domain, false, later), "and then everything is good")
			_, err := Find(dir, c.domain, later)
			require.NoError(t, err)
		})
	}
}

func TestKeysAreForTheOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	// A file that an interrupted run left, open to all.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem.part"), nil, 0o644))
	remake(t, dir, domain, false, time.Now())
	for name, mode := range map[string]os.FileMode{"ca-key.pem": 0o600, "key.pem": 0o600, "ca.pem": 0o644, "cert.pem": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	_, err := Find(dir, domain, time.Now())
	require.ErrorIs(t, err, ErrNone)
	remake(t, dir, domain, false, time.Now())
	files, err := Find(dir, domain+":443", time.Now())
	require.NoError(t, err)
	require.Equal(t, In(dir), files)
	_, err = Find(dir, "other.example", time.Now())
	require.ErrorContains(t, err, "isthmus tls init --domain other.example")
	_, err = Find(dir, domain, time.Now().Add(certificateLife+time.Hour))
	require.ErrorContains(t, err, "ended on")
	require.NoError(t, os.WriteFile(files.Certificate, []byte("x"), 0o644))
	_, err = Find(dir, domain, time.Now())
	require.ErrorContains(t, err, "no certificate in PEM form")
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err := Make(filepath.Join(file, "tls"), domain, false, time.Now())
	require.ErrorContains(t, err, "the folder of certificates")
}
