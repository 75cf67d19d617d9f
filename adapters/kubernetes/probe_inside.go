package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// between is the pause between two calls to an envd that does not answer yet.
const between = 20 * time.Millisecond

// waits returns when the envd of a pod that was just started has answered: it is told its deadline again.
func (c *Cluster) waits(ctx context.Context, spec adapters.Spec, open dial) error {
	for {
		_, err := c.ask(ctx, spec, open, http.MethodPut, envd.RouteDeadline, map[string]time.Time{"deadline": spec.Envd.Deadline})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(between):
		}
	}
}

// gvisorBuild is in /proc/version of every gVisor, which makes its own kernel up (gvisor.dev/docs, "How do I know
// that I am in gVisor").
const gvisorBuild = "Sun Jan 10 15:06:54 PST 2016"

// probeIsolation looks from inside whether the pool is what it is said to be, where that shows.
func (c *Cluster) probeIsolation(ctx context.Context, spec adapters.Spec, open dial) error {
	if c.config.Isolation != "gvisor" {
		return nil
	}
	route := "/files?" + url.Values{"path": {"/proc/version"}, "username": {"root"}}.Encode()
	for {
		text, err := c.ask(ctx, spec, open, http.MethodGet, route, nil)
		switch {
		case err == nil && strings.Contains(text, gvisorBuild):
			c.findings.IsolationSeen = true
			return nil
		case err == nil:
			return adapters.Errorf(adapters.KindInvalid, "the runtime class %s does not run gVisor: its kernel is %q", c.config.RuntimeClass, strings.TrimSpace(text))
		case ctx.Err() != nil:
			return err
		}
		time.Sleep(between) // it takes its configuration over
	}
}

// ask sends one request of the facade's own, which must be answered well.
func (c *Cluster) ask(ctx context.Context, spec adapters.Spec, open dial, method, route string, body any) (string, error) {
	status, answer, err := c.answer(ctx, spec, open, method, route, body)
	if err == nil && status/100 != 2 {
		err = statusError(status)
	}
	return answer, err
}

// statusError is the error of an answer of envd that is not a good one.
func statusError(status int) error {
	return fmt.Errorf("envd answered %d %s", status, http.StatusText(status))
}

// answer sends one request of the facade's own.
func (c *Cluster) answer(ctx context.Context, spec adapters.Spec, open dial, method, route string, body any) (status int, answer string, _ error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+spec.BoxID+route, bytes.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set(envd.HeaderTransport, spec.Envd.Transport)
	request.Header.Set(envd.HeaderControl, spec.Envd.Control)
	transport := &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return open(ctx) },
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	return response.StatusCode, string(content), err
}
