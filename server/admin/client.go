package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// Client calls the administration of one Isthmus. It must be closed.
type Client struct {
	http *http.Client
	stop func() error
}

// Dial finds the server that runs on a data folder; ErrNoServer when none does. A folder that this user may
// not use is another error, which says so.
func Dial(ctx context.Context, dataDir string) (*Client, error) {
	conn, err := dialSocket(ctx, dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoServer
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.New("this user may not use the data folder: run the command as the user that runs Isthmus")
	case err != nil:
		return nil, err
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	return newClient(func(ctx context.Context) (net.Conn, error) { return dialSocket(ctx, dataDir) }, nil), nil
}

// Inside calls an Admin of this process, over connections in memory: the same calls as over the socket.
func (a *Admin) Inside() *Client {
	listener := newPipes()
	server := &http.Server{Handler: a.Socket()}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return newClient(listener.dial, func() error {
		err := server.Close()
		<-ended
		return err
	})
}

func newClient(dial func(context.Context) (net.Conn, error), stop func() error) *Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	return &Client{http: &http.Client{Transport: transport}, stop: stop}
}

// Close ends what the client holds open.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	if c.stop == nil {
		return nil
	}
	return c.stop()
}

// Environment returns what clients need to find this Isthmus.
func (c *Client) Environment(ctx context.Context) (Environment, error) {
	return call[Environment](ctx, c, http.MethodGet, "/isthmus/env", nil)
}

// Sandboxes lists the sandboxes of all teams.
func (c *Client) Sandboxes(ctx context.Context) ([]Sandbox, error) {
	return call[[]Sandbox](ctx, c, http.MethodGet, "/isthmus/sandboxes", nil)
}

// Kill ends one sandbox.
func (c *Client) Kill(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/isthmus/sandboxes/"+url.PathEscape(id), nil)
	return err
}

// KillAll ends all sandboxes.
func (c *Client) KillAll(ctx context.Context) (Killed, error) {
	return call[Killed](ctx, c, http.MethodDelete, "/isthmus/sandboxes", nil)
}

// Placement returns how it was decided where a sandbox goes.
func (c *Client) Placement(ctx context.Context, id string) (placement.Decision, error) {
	return call[placement.Decision](ctx, c, http.MethodGet, "/isthmus/sandboxes/"+url.PathEscape(id)+"/placement", nil)
}

// Plan returns what would become of a create.
func (c *Client) Plan(ctx context.Context, ask NewPlan) (Planned, error) {
	return call[Planned](ctx, c, http.MethodPost, "/isthmus/placement/plan", ask)
}

// Pools lists the pools.
func (c *Client) Pools(ctx context.Context) ([]fleet.PoolState, error) {
	return call[[]fleet.PoolState](ctx, c, http.MethodGet, "/isthmus/pools", nil)
}

// Reload lets the server load its pools and rules again, and returns the changed fields that wait for a new start.
func (c *Client) Reload(ctx context.Context) ([]string, error) {
	answered, err := call[Reloaded](ctx, c, http.MethodPost, "/isthmus/reload", nil)
	return answered.NeedsStart, err
}

// Teams lists the teams.
func (c *Client) Teams(ctx context.Context) ([]store.Team, error) {
	return call[[]store.Team](ctx, c, http.MethodGet, "/isthmus/teams", nil)
}

// CreateTeam makes a team.
func (c *Client) CreateTeam(ctx context.Context, ask NewTeam) (store.Team, error) {
	return call[store.Team](ctx, c, http.MethodPost, "/isthmus/teams", ask)
}

// Keys lists the keys of all teams, without the keys themselves.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	return call[[]Key](ctx, c, http.MethodGet, "/isthmus/keys", nil)
}

// CreateKey makes a key and returns it.
func (c *Client) CreateKey(ctx context.Context, ask NewKey) (Key, error) {
	return call[Key](ctx, c, http.MethodPost, "/isthmus/keys", ask)
}

// RevokeKey makes a key invalid.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/isthmus/keys/"+url.PathEscape(id), nil)
	return err
}

// Backup copies the whole store to w.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	response, err := c.send(ctx, http.MethodGet, "/isthmus/backup", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(w, response.Body)
	return err
}

// call sends one request and decodes the answer, if there is one.
func call[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var result T
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return result, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNoContent {
		return result, nil
	}
	return result, json.NewDecoder(response.Body).Decode(&result)
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://isthmus"+path, payload)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	var f failure
	if json.NewDecoder(io.LimitReader(response.Body, maxBody)).Decode(&f) == nil && f.Message != "" {
		return nil, errors.New(f.Message)
	}
	return nil, fmt.Errorf("the server answered %s", response.Status)
}
