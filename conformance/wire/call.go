package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 8 << 20

// call is one request, as it goes onto the wire: nothing of it is cleaned or completed.
type call struct {
	method string
	// path is the request target, with its query.
	path   string
	header http.Header
	body   string
	// host replaces the Host header.
	host string
	// toSandbox sends the request to the SandboxURL instead of the APIURL.
	toSandbox bool
	// length replaces the Content-Length; -1 sends none.
	length int
}

// answer is what came back, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes the body.
func (a answer) into(value any) error {
	if err := json.Unmarshal(a.body, value); err != nil {
		return fmt.Errorf("the answer is no JSON: %w: %s", err, clip(a.body))
	}
	return nil
}

// do sends a call and ends the case when no answer comes.
func (s *Suite) do(t T, c call) answer {
	t.Helper()
	got, err := s.try(t.Context(), c)
	must(t, err, c.method+" "+c.path)
	return got
}

// expect sends a call that must be answered with the given status.
func (s *Suite) expect(t T, status int, c call) answer {
	t.Helper()
	got := s.do(t, c)
	if got.status != status {
		t.Errorf("%s %s: got status %d, want %d: %s", c.method, c.path, got.status, status, clip(got.body))
		t.FailNow()
	}
	return got
}

// try sends one request over a connection of its own, byte for byte as the call says: net/http's client would
// refuse or repair much of what the cases send.
func (s *Suite) try(ctx context.Context, c call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	base := s.target.APIURL
	if c.toSandbox {
		base = s.target.SandboxURL
	}
	target, err := url.Parse(base)
	if err != nil {
		return answer{}, err
	}
	conn, err := dial(ctx, target)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	// A server may refuse before it has read everything: its answer counts, not the failed write.
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, c.text(target))
		wrote <- err
	}()
	got, err := receive(bufio.NewReader(conn), c.method)
	if err != nil {
		conn.Close()
		if failed := <-wrote; failed != nil {
			return answer{}, fmt.Errorf("sending: %w", failed)
		}
		return answer{}, fmt.Errorf("receiving: %w", err)
	}
	return got, nil
}

// dial connects to the host of a URL, by TLS when it is https.
func dial(ctx context.Context, target *url.URL) (net.Conn, error) {
	port := target.Port()
	if target.Scheme == "https" {
		if port == "" {
			port = "443"
		}
		dialer := tls.Dialer{Config: &tls.Config{ServerName: target.Hostname(), MinVersion: tls.VersionTLS12}}
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), port))
	}
	if port == "" {
		port = "80"
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), port))
}

// text is the whole request.
func (c call) text(target *url.URL) string {
	var text strings.Builder
	host := c.host
	if host == "" {
		host = target.Host
	}
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", c.method, target.Path+c.path, host)
	for name, values := range c.header {
		for _, value := range values {
			fmt.Fprintf(&text, "%s: %s\r\n", name, value)
		}
	}
	if c.header.Get("Content-Type") == "" && c.body != "" {
		text.WriteString("Content-Type: application/json\r\n")
	}
	switch {
	case c.length > 0:
		fmt.Fprintf(&text, "Content-Length: %d\r\n", c.length)
	case c.length == 0 && (c.body != "" || c.method == "POST" || c.method == "PUT"):
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(c.body))
	}
	text.WriteString("\r\n" + c.body)
	return text.String()
}

// receive reads one answer whole.
func receive(from *bufio.Reader, method string) (answer, error) {
	response, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("after status %d: %w", response.StatusCode, err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: body}, nil
}
