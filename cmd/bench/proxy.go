package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"time"
)

// proxyRole makes this program the bare proxy: bench proxy ADDRESS SOCKET.
const proxyRole = "proxy"

// serveProxy is the standard library's reverse proxy and nothing else, in front of a unix socket. Full duplex is on,
// because without it some streams are cut short.
func serveProxy(address, socket string) error {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "envd"}) },
		Transport: overSocket(socket),
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: address, Protocols: protocols, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})}
	return server.ListenAndServe()
}

// overSocket opens all connections to one socket.
func overSocket(socket string) *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 512, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
}

// overTCP keeps as many connections as there are calls at once.
func overTCP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}}
}

// overH2C speaks HTTP/2 without TLS.
func overH2C() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: protocols, DisableCompression: true}}
}

func client(transport http.RoundTripper) *http.Client { return &http.Client{Transport: transport} }

// bareProxy starts this program as the bare proxy in front of a socket.
func bareProxy(ctx context.Context, socket string) (*program, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	p, err := launch(ctx, "http://"+address+"/health", exec.Command(self, proxyRole, address, socket))
	return p, "http://" + address, err
}
