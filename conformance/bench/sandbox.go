package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/process"
)

// Server is an E2B-compatible server as clients find it.
type Server struct {
	// APIURL is the base of the control plane, SandboxURL that of sandboxes, addressed by headers; empty: sandboxes
	// have host names below the domain that the server tells, or else below Domain.
	APIURL, SandboxURL, Domain, APIKey string
	// Template of what is created; empty: base.
	Template string
	Client   *http.Client
}

// Sandbox is one that a Server made.
type Sandbox struct {
	ID          string `json:"sandboxID"`
	AccessToken string `json:"envdAccessToken"`
	Domain      string `json:"domain"`
}

// Create makes a sandbox of an hour.
func (s Server) Create(ctx context.Context) (Sandbox, error) {
	body, err := json.Marshal(map[string]any{"templateID": cmp.Or(s.Template, "base"), "timeout": 3600, "secure": true})
	if err != nil {
		return Sandbox{}, err
	}
	var made Sandbox
	return made, s.ask(ctx, http.MethodPost, "/v2/sandboxes", body, &made)
}

// Kill ends a sandbox.
func (s Server) Kill(ctx context.Context, id string) error {
	return s.ask(ctx, http.MethodDelete, "/sandboxes/"+id, nil, nil)
}

func (s Server) ask(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.APIURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-API-Key", s.APIKey)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text[:min(len(text), 300)])
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// Target is the way to the envd of a sandbox, as its user.
func (s Server) Target(name string, of Sandbox) *Target {
	t := &Target{Name: name, URL: s.SandboxURL, Client: s.Client, Folder: "/home/user/bench", Header: http.Header{}}
	t.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:")))
	t.Header.Set("X-Access-Token", of.AccessToken)
	if t.URL == "" {
		t.URL = fmt.Sprintf("https://%d-%s.%s", envd.Port, of.ID, cmp.Or(of.Domain, s.Domain))
	} else {
		t.Header.Set("E2b-Sandbox-Id", of.ID)
		t.Header.Set("E2b-Sandbox-Port", fmt.Sprint(envd.Port))
	}
	return t
}

// first runs one command, as SDKs do, and looks at what it says.
func (t *Target) first(ctx context.Context) error {
	const word = "interactive"
	stream, err := t.process().Start(ctx, connect.NewRequest(&process.StartRequest{
		Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", "echo " + word}},
	}))
	if err != nil {
		return err
	}
	defer stream.Close()
	var said strings.Builder
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		said.Write(event.GetData().GetStdout())
		if end := event.GetEnd(); end != nil && (end.GetExitCode() != 0 || strings.TrimSpace(said.String()) != word) {
			return fmt.Errorf("the first command ended with %s and said %q", end.GetStatus(), said.String())
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if said.Len() == 0 {
		return errors.New("the first command said nothing")
	}
	return nil
}
