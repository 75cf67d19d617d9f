package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Target is the server under test and the way to it.
type Target struct {
	// APIURL is the base of the control plane, for example http://127.0.0.1:3000.
	APIURL string
	// SandboxURL is where requests to sandboxes are sent, addressed by headers. Empty: the APIURL.
	SandboxURL string
	// APIKey is the key of an otherwise idle team.
	APIKey string
	// Template is what sandboxes are made of. Empty: base.
	Template string
}

// Suite is a target with the two sandboxes that the cases share: the subject, which requests are aimed at,
// and a neighbour, whose credentials must not open the subject.
type Suite struct {
	target    Target
	client    *http.Client
	subject   sandbox
	neighbour sandbox
	// sleeper is the pid of a command that runs in the subject for as long as the suite does.
	sleeper int
}

// sandbox is what a create answers.
type sandbox struct {
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"`
	TemplateID         string  `json:"templateID"`
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken"`
	TrafficAccessToken string  `json:"trafficAccessToken"`
	Domain             *string `json:"domain"`
}

// host is the name that addresses one port of the sandbox; empty when the server names no domain.
func (s sandbox) host(port int) string {
	if s.Domain == nil || *s.Domain == "" {
		return ""
	}
	return fmt.Sprintf("%d-%s.%s", port, s.SandboxID, *s.Domain)
}

// Open makes the shared sandboxes. The suite must be closed.
func Open(ctx context.Context, target Target) (*Suite, error) {
	if target.SandboxURL == "" {
		target.SandboxURL = target.APIURL
	}
	if target.Template == "" {
		target.Template = "base"
	}
	for _, address := range []string{target.APIURL, target.SandboxURL} {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" {
			return nil, fmt.Errorf("wire: %q is not a URL such as http://127.0.0.1:3000", address)
		}
	}
	target.APIURL = strings.TrimSuffix(target.APIURL, "/")
	target.SandboxURL = strings.TrimSuffix(target.SandboxURL, "/")
	s := &Suite{target: target, client: &http.Client{Timeout: time.Minute}}
	for _, box := range []*sandbox{&s.subject, &s.neighbour} {
		if err := s.provide(ctx, box); err != nil {
			return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}
	if err := s.furnish(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// provide makes one shared sandbox.
func (s *Suite) provide(ctx context.Context, box *sandbox) error {
	body := encode(map[string]any{"templateID": s.target.Template, "timeout": 900})
	got, err := s.try(ctx, call{method: "POST", path: "/v2/sandboxes", body: body, header: s.key()})
	if err != nil {
		return fmt.Errorf("wire: making a sandbox: %w", err)
	}
	if got.status != http.StatusCreated {
		return fmt.Errorf("wire: making a sandbox: status %d: %s", got.status, clip(got.body))
	}
	return got.into(box)
}

// furnish puts a file and a command into the subject, so that a change of either would be noticed.
func (s *Suite) furnish(ctx context.Context) error {
	file := s.envd("POST", "/files?path=/home/user/canary/file", "canary")
	file.header.Set("Content-Type", "application/octet-stream")
	got, err := s.try(ctx, file)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", got.status, clip(got.body))
	}
	if err != nil {
		return fmt.Errorf("wire: writing a file: %w", err)
	}
	started, err := s.start(ctx, command{cmd: "/bin/sleep", args: []string{"3600"}})
	if err != nil {
		return fmt.Errorf("wire: starting a command: %w", err)
	}
	defer started.close()
	s.sleeper, err = started.pid()
	return err
}

// Close kills the shared sandboxes.
func (s *Suite) Close(ctx context.Context) error {
	var failures []error
	for _, box := range []sandbox{s.subject, s.neighbour} {
		if box.SandboxID == "" {
			continue
		}
		_, err := s.try(ctx, call{method: "DELETE", path: "/sandboxes/" + box.SandboxID, header: s.key()})
		failures = append(failures, err)
	}
	s.client.CloseIdleConnections()
	return errors.Join(failures...)
}

// key is the header of the control plane.
func (s *Suite) key() http.Header {
	return http.Header{"X-Api-Key": {s.target.APIKey}}
}

// route is the headers that address the subject's envd, with its token.
func (s *Suite) route() http.Header {
	return routeTo(s.subject)
}

// routeTo is the headers that address a sandbox's envd, with its token.
func routeTo(box sandbox) http.Header {
	return http.Header{
		"E2b-Sandbox-Id":   {box.SandboxID},
		"E2b-Sandbox-Port": {"49983"},
		"X-Access-Token":   {box.EnvdAccessToken},
	}
}

// envd is a request to the subject's envd.
func (s *Suite) envd(method, path, body string) call {
	return call{method: method, path: path, body: body, header: s.route(), toSandbox: true}
}

// rpc is a unary call to the subject's envd, for example process.Process/List.
func (s *Suite) rpc(method, message string) call {
	c := s.envd("POST", "/"+method, message)
	c.header.Set("Content-Type", "application/json")
	c.header.Set("Connect-Protocol-Version", "1")
	return c
}
