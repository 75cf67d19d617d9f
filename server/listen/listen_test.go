package listen

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// start runs a server until the test ends, and returns its address, how to stop it, and what Run returned.
func start(t *testing.T, c Config) (address string, stop context.CancelFunc, ended chan error) {
	c.Log = slog.New(slog.DiscardHandler)
	server, err := New(c)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()
	t.Cleanup(stop)
	return listener.Addr().String(), stop, ended
}

func awaitEnd(t *testing.T, ended chan error) {
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
}

// certify writes a wildcard certificate, valid for the given name, and trusts it.
func certify(t *testing.T, folder, name string) (certificate, key string, trusted *x509.CertPool) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name, "*." + name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	certificate, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	trusted = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	trusted.AddCert(parsed)
	return certificate, key, trusted
}

func tellProtocol(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s %v", r.Proto, r.TLS != nil)
}

func TestEveryProtocolOnOnePort(t *testing.T) {
	certificate, key, trusted := certify(t, t.TempDir(), "sandbox.test")
	both, stopBoth, bothEnded := start(t, Config{Handler: http.HandlerFunc(tellProtocol), Certificate: certificate, Key: key})
	plain, stopPlain, plainEnded := start(t, Config{Handler: http.HandlerFunc(tellProtocol)})

	tests := []struct {
		name, url, address string
		allow              func(*http.Protocols)
		want               string
	}{
		{"HTTP/1.1", "http://sandbox.test", both, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1 false"},
		{"h2c", "http://sandbox.test", both, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "HTTP/2.0 false"},
		{"HTTP/1.1 over TLS", "https://sandbox.test", both, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1 true"},
		{"HTTP/2 over TLS", "https://sandbox.test", both, func(p *http.Protocols) { p.SetHTTP2(true) }, "HTTP/2.0 true"},
		{"TLS, client's choice, wildcard", "https://49983-abc.sandbox.test", both, func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true) }, "HTTP/2.0 true"},
		{"HTTP/1.1 without a certificate", "http://sandbox.test", plain, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1 false"},
		{"h2c without a certificate", "http://sandbox.test", plain, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "HTTP/2.0 false"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			transport := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: trusted},
				Protocols:       new(http.Protocols),
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, test.address)
				},
			}
			defer transport.CloseIdleConnections()
			test.allow(transport.Protocols)
			answer, err := (&http.Client{Transport: transport, Timeout: patience}).Get(test.url)
			require.NoError(t, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, test.want, string(body))
		})
	}
	stopBoth()
	stopPlain()
	awaitEnd(t, bothEnded)
	awaitEnd(t, plainEnded)
}

// TestSilentConnections: one that says nothing holds nobody up, neither other clients nor the end.
func TestSilentConnections(t *testing.T) {
	certificate, key, _ := certify(t, t.TempDir(), "sandbox.test")
	address, stop, ended := start(t, Config{Handler: http.HandlerFunc(tellProtocol), Certificate: certificate, Key: key})
	var silent []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		silent = append(silent, conn)
	}
	client := http.Client{Timeout: patience}
	answer, err := client.Get("http://" + address)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	client.CloseIdleConnections()
	stop()
	awaitEnd(t, ended)
	for _, conn := range silent {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection was left open")
	}
}

func TestStopWaitsAndThenBreaksOff(t *testing.T) {
	begun := make(chan struct{}, 2)
	quick := make(chan struct{})
	var returned bool
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		if r.URL.Path == "/quick" {
			<-quick
			_, _ = io.WriteString(w, "done\n")
			return
		}
		<-r.Context().Done()
		returned = true
	}
	patient, stopPatient, patientEnded := start(t, Config{Handler: http.HandlerFunc(handler), Grace: patience})
	address, stop, ended := start(t, Config{Handler: http.HandlerFunc(handler), Grace: 100 * time.Millisecond})
	client := http.Client{Timeout: patience}
	open := func(address, path string) *bufio.Reader {
		answer, err := client.Get("http://" + address + path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		<-begun
		return bufio.NewReader(answer.Body)
	}
	finishes, lasts := open(patient, "/quick"), open(address, "/endless")
	stopPatient()
	stop()
	close(quick)
	body, err := io.ReadAll(finishes)
	require.NoError(t, err)
	require.Equal(t, "begun\ndone\n", string(body))
	_, err = io.ReadAll(lasts)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	awaitEnd(t, patientEnded)
	awaitEnd(t, ended)
	require.True(t, returned, "Run returned before the handler")
	_, err = net.Dial("tcp", address)
	require.Error(t, err)
}

func TestFailingListenerEndsTheServer(t *testing.T) {
	certificate, key, _ := certify(t, t.TempDir(), "sandbox.test")
	for _, c := range []Config{{}, {Certificate: certificate, Key: key}} {
		c.Handler, c.Log = http.NotFoundHandler(), slog.New(slog.DiscardHandler)
		server, err := New(c)
		require.NoError(t, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		require.ErrorIs(t, server.Run(t.Context(), listener), net.ErrClosed)
	}
}

func TestCertificateFiles(t *testing.T) {
	folder := t.TempDir()
	certificate, key, _ := certify(t, folder, "one.test")
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]Config{
		"no key":          {Certificate: certificate},
		"no certificate":  {Key: key},
		"missing file":    {Certificate: certificate, Key: filepath.Join(folder, "none.pem")},
		"key as its pair": {Certificate: key, Key: key},
	} {
		c.Log = log
		_, err := New(c)
		require.Error(t, err, name)
	}

	var said bytes.Buffer
	p, err := newPair(certificate, key, slog.New(slog.NewTextHandler(&said, nil)))
	require.NoError(t, err)
	name := func() string {
		p.looked = time.Time{}
		pair, err := p.get(nil)
		require.NoError(t, err)
		return pair.Leaf.Subject.CommonName
	}
	later := func(by time.Duration) {
		for _, file := range []string{certificate, key} {
			require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(by)))
		}
	}
	require.Equal(t, "one.test", name())
	certify(t, folder, "two.test")
	later(time.Minute)
	require.Equal(t, "two.test", name(), "a changed file is read")
	require.NoError(t, os.WriteFile(key, []byte("half"), 0o600))
	later(time.Hour)
	require.Empty(t, said.String())
	require.Equal(t, "two.test", name(), "a broken one is not")
	require.Equal(t, "two.test", name())
	require.Equal(t, 1, strings.Count(said.String(), "cannot be used"), "and that is told once")
	require.Contains(t, said.String(), key)
	certify(t, folder, "three.test")
	later(2 * time.Hour)
	require.Equal(t, "three.test", name())
}
