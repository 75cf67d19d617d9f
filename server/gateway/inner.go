package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
)

// toInner passes a request on to the server that the sandbox is on, under the id that it has there.
func toInner(p *httputil.ProxyRequest, x *exchange) {
	inner := x.pool.route.Inner
	endpoint := inner.Port(x.target.port)
	query := p.Out.URL.RawQuery
	p.SetURL(endpoint.URL)
	p.Out.URL.RawQuery = query
	p.Out.Header.Set(headerHost, hostOf(p.In))
	for name, values := range endpoint.Header {
		p.Out.Header[name] = values
	}
}

// controlPath reports whether a path is, or becomes when it is decoded and cleaned, one of a control plane. The
// server that a sandbox is on may serve both at one address, and go by the path: whoever has no business with it
// must not come there through a sandbox. An envd has no path that begins so.
func controlPath(u *url.URL) bool {
	return settles(u, func(path string) bool {
		path = strings.TrimPrefix(strings.ToLower(path), "/v2")
		return strings.HasPrefix(path, "/sandboxes")
	})
}

// headerHost tells an Isthmus behind this one the Host that the client sent, and that applications want to see. The
// Host of the request itself is that server's own: it would read another sandbox out of the client's. Whoever
// addresses a sandbox by headers can choose the Host, so that nothing more can be done with this.
const headerHost = "Isthmus-Host"

// hostOf is the Host that the client sent.
func hostOf(r *http.Request) string { return cmp.Or(r.Header.Get(headerHost), r.Host) }

// keepForwarded has the application learn of the client what the Isthmus in front of this one knows.
func keepForwarded(p *httputil.ProxyRequest) {
	if p.In.Header.Get(headerHost) == "" {
		return
	}
	p.Out.Header.Set("X-Forwarded-Host", hostOf(p.In))
	if proto := p.In.Header.Get("X-Forwarded-Proto"); proto == "http" || proto == "https" {
		p.Out.Header.Set("X-Forwarded-Proto", proto)
	}
}

// maxAnswer is more than a gateway's own error has, in bytes.
const maxAnswer = 4 << 10

// renameInner puts our id into an error of the other server's gateway, which names the sandbox by its own. What
// an application answers stays as it is, whatever it looks like but for that very form.
func renameInner(answer *http.Response, inner, outer string) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode < http.StatusBadRequest || kind != "application/json" || answer.Request.Method == http.MethodHead ||
		answer.ContentLength <= 0 || answer.ContentLength > maxAnswer {
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return err
	}
	text = renamed(text, answer.StatusCode, inner, outer)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	answer.ContentLength = int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

func renamed(text []byte, status int, inner, outer string) []byte {
	theirs := answerOf(text)
	if theirs == nil || theirs.SandboxID != inner || theirs.Code != status {
		return text
	}
	theirs.SandboxID = outer
	ours, err := json.Marshal(theirs)
	if err != nil {
		return text
	}
	return append(ours, '\n')
}

// answerOf reads an error of a gateway; nil when it is none.
func answerOf(text []byte) *answer {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var a answer
	if decoder.Decode(&a) != nil {
		return nil
	}
	return &a
}
