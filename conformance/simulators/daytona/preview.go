package daytona

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// previewHost is the form of the host of a preview: its first word is the port and the sandbox, or the port and the
// token of a signed URL.
var previewHost = regexp.MustCompile(`^([0-9]{1,5})-([a-z0-9-]+)\.proxy\.localhost(:[0-9]+)?$`)

// The ways in which a request proves that it may see a preview.
const (
	previewHeader = "X-Daytona-Preview-Token"
	previewQuery  = "DAYTONA_SANDBOX_AUTH_KEY"
)

// maxSigned is the longest life of a signed URL in seconds.
const maxSigned = 86_400

// previewed reads the host of a preview.
func previewed(host string) (port uint16, name string, is bool) {
	parts := previewHost.FindStringSubmatch(host)
	if parts == nil {
		return 0, "", false
	}
	number, err := strconv.ParseUint(parts[1], 10, 16)
	return uint16(number), parts[2], err == nil && number > 0
}

// previewAt is the URL of a preview on the server that the request came to.
func previewAt(r *http.Request, port uint16, name string) string {
	domain := "proxy.localhost"
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		domain += ":" + p
	}
	return "http://" + strconv.Itoa(int(port)) + "-" + name + "." + domain
}

func portOf(r *http.Request) (uint16, error) {
	port, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || port == 0 {
		return 0, invalid("Invalid port")
	}
	return uint16(port), nil
}

func (s *Simulator) previewURL(r *http.Request, sb *sandbox) (reply, error) {
	port, err := portOf(r)
	if err != nil {
		return reply{}, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return ok(map[string]any{"sandboxId": sb.facts.ID, "url": previewAt(r, port, sb.facts.ID), "token": sb.token})
}

func (s *Simulator) signedURL(r *http.Request, sb *sandbox) (reply, error) {
	port, err := portOf(r)
	if err != nil {
		return reply{}, err
	}
	seconds := 60
	if text := r.URL.Query().Get("expiresInSeconds"); text != "" {
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > maxSigned {
			return reply{}, invalid("expiresInSeconds must be between 1 and 86400")
		}
	}
	token := strings.ToLower(rand.Text())[:16]
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.signed[token] = signature{port, time.Now().Add(time.Duration(seconds) * time.Second)}
	return ok(map[string]any{"sandboxId": sb.facts.ID, "port": int(port), "token": token, "url": previewAt(r, port, token)})
}

func (s *Simulator) expireURL(r *http.Request, sb *sandbox) (reply, error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	delete(sb.signed, r.PathValue("token"))
	return reply{status: http.StatusOK}, nil
}

func (s *Simulator) toolboxURL(r *http.Request, _ *sandbox) (reply, error) {
	return ok(map[string]any{"url": "http://" + r.Host + "/toolbox"})
}

// servePreview passes a request on to a port of a sandbox, when it proves that it may.
func (s *Simulator) servePreview(w http.ResponseWriter, r *http.Request, port uint16, name string) {
	sb := s.find(name)
	allowed := sb != nil && s.mayPreview(r, sb, port)
	if sb == nil {
		sb = s.signedFor(port, name)
		allowed = sb != nil
	}
	if !allowed {
		w.Header().Set("Location", "/api/auth/login?redirect="+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	box, err := sb.running()
	if err != nil {
		refuse(w, r, err)
		return
	}
	if r.Header.Get("X-Daytona-Skip-Last-Activity-Update") == "" {
		sb.touch()
	}
	box.ServePort(w, r, port, func(p *httputil.ProxyRequest) { p.Out.Header.Del(previewHeader) },
		func(w http.ResponseWriter, r *http.Request, err error) {
			refuse(w, r, &failure{Status: http.StatusBadGateway, Message: "bad gateway: " + err.Error()})
		})
}

// mayPreview looks for a token, the API key, or a sandbox that is open to all. Some ports never are.
func (s *Simulator) mayPreview(r *http.Request, sb *sandbox, port uint16) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.facts.Public && port != 22222 && port != 2280 && port != 33333 {
		return true
	}
	for _, shown := range []string{r.Header.Get(previewHeader), r.URL.Query().Get(previewQuery)} {
		if shown == sb.token {
			return true
		}
	}
	return r.Header.Get("Authorization") == "Bearer "+s.config.Key
}

// signedFor finds the sandbox of a signed URL that has not expired.
func (s *Simulator) signedFor(port uint16, token string) *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sb := range s.sandboxes {
		sb.mu.Lock()
		one, known := sb.signed[token]
		sb.mu.Unlock()
		if known && one.port == port && time.Now().Before(one.expires) {
			return sb
		}
	}
	return nil
}
