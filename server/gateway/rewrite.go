package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/isthmus/isthmus/envd"
)

// errNotBegun makes the reverse proxy drop an answer that came too late.
var errNotBegun = errors.New("the sandbox ended before the answer began")

// rewrite makes the request that goes into the sandbox. What the client sent stays as it was, but for the
// secrets, which only the facade may send, and the headers that say where the request came from.
func rewrite(p *httputil.ProxyRequest) {
	x := exchangeOf(p.In)
	p.Out.URL.RawQuery = p.In.URL.RawQuery // with what the reverse proxy takes out as malformed
	p.Out.Header.Del(envd.HeaderTransport)
	p.Out.Header.Del(envd.HeaderControl)
	p.Out.Header.Del(headerHost)
	if x.pool.route.Inner == nil { // else it is for the server there
		p.Out.Header.Del(headerTraffic)
	}
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	keepForwarded(p)
	switch {
	case x.pool.route.Inner != nil:
		toInner(p, x)
	case x.target.port == envd.Port:
		toEnvd(p, x)
	default:
		toPort(p, x)
	}
}

func toEnvd(p *httputil.ProxyRequest, x *exchange) {
	endpoint := x.pool.route.Endpoint
	query := p.Out.URL.RawQuery
	p.SetURL(endpoint.URL)
	p.Out.URL.RawQuery = query
	if endpoint.Dial != nil && !endpoint.ByHost {
		p.Out.Host = p.In.Host
	} // else it is a public URL, which is found by its own host name
	for name, values := range endpoint.Header {
		p.Out.Header[name] = values
	}
	if secret := x.pool.route.Transport; secret != "" {
		p.Out.Header.Set(envd.HeaderTransport, secret)
	}
}

// toPort addresses the application; the dialer reads the port from the URL.
func toPort(p *httputil.ProxyRequest, x *exchange) {
	port := strconv.Itoa(int(x.target.port))
	p.Out.URL.Scheme = "http"
	p.Out.URL.Host = net.JoinHostPort("127.0.0.1", port)
	p.Out.Host = hostOf(p.In)
	if mask := x.pool.route.MaskRequestHost; mask != "" {
		p.Out.Host = strings.ReplaceAll(mask, "${PORT}", port)
	}
}

// begin is called when an answer's header has come.
func begin(answer *http.Response) error {
	x := exchangeOf(answer.Request)
	if inner := x.pool.route.Inner; inner != nil {
		if err := renameInner(answer, inner.ID, x.target.sandboxID); err != nil {
			return err
		}
	}
	if !x.begin(answer.Header) {
		return errNotBegun
	}
	return nil
}

// internalPath reports whether a path is, or becomes when it is decoded and cleaned, one of the daemon's
// internal routes. A path that does not settle in a few rounds of decoding has nothing good in mind.
func internalPath(u *url.URL) bool { return settles(u, envd.Internal) }

// settles reports whether a path is such a one at any stage of being decoded and cleaned, or never settles.
func settles(u *url.URL, such func(path string) bool) bool {
	text := u.EscapedPath()
	for range maxDecodings {
		if such(cleaned(text)) {
			return true
		}
		decoded, err := url.PathUnescape(text)
		if err != nil || decoded == text {
			return false
		}
		text = decoded
	}
	return true
}

const maxDecodings = 8

// cleaned takes //, . and .. out of a path, and the slash at its end.
func cleaned(text string) string { return path.Clean("/" + text) }

// buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { return new([copySize]byte) }}}
}

// Get returns a buffer.
func (b *buffers) Get() []byte { return b.pool.Get().(*[copySize]byte)[:] }

// Put takes a buffer back.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[copySize]byte)(buffer)) }
