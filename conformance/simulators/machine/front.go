//go:build linux

package machine

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// maxShort bounds a body that is read before it is passed on, in bytes.
const maxShort = 1 << 20

// ServePort passes one request on to a port of the box, as the HTTP fronts of clouds do. rewrite changes what is passed
// on, failed answers when nobody listens there.
//
// A body may be answered before it was read. Of a short one nothing can be left on the connection then: it is read
// first. A stream of a client goes on beside its answer. With anything else net/http ends the connection by itself.
func (b *Box) ServePort(w http.ResponseWriter, r *http.Request, port uint16, rewrite func(*httputil.ProxyRequest),
	failed func(http.ResponseWriter, *http.Request, error)) {
	switch {
	case r.ContentLength > 0 && r.ContentLength <= maxShort:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // whoever asked has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	case r.ContentLength < 0 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/connect+"):
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx, port) }},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", "box", p.In.Host
			rewrite(p)
		},
		ErrorHandler: failed,
	}
	proxy.ServeHTTP(w, r)
}
