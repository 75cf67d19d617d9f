package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
)

// maxAnswer bounds one answer of the server, in bytes: a page of 100 sandboxes with all their metadata.
const maxAnswer = 32 << 20

// api sends requests to the control plane.
type api struct {
	base   *url.URL
	client *http.Client
	key    func() (string, error)
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	body, into   any
	// makes says that the call makes something, so that an outcome that is not known must be told from a
	// failure.
	makes bool
}

// send makes one call. The error is one of the contract, or that of ctx. more is the token of the next page.
func (a *api) send(ctx context.Context, r request) (more string, err error) {
	answer, err := a.exchange(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection is kept
		_ = answer.Body.Close()
	}()
	err = r.read(answer)
	if adapters.MisreadOf(err) != nil && ctx.Err() != nil {
		err = ctx.Err() // it was not read to its end
	}
	return answer.Header.Get("X-Next-Token"), err
}

// read reads an answer.
func (r request) read(answer *http.Response) error {
	switch {
	case answer.StatusCode/100 != 2:
		return failure(answer, r.makes)
	case adapters.IsPage(answer):
		return misread(r.makes, nil, "it is a page, "+answer.Status)
	case r.into == nil:
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(r.into); err != nil {
		return misread(r.makes, err, adapters.Unreadable(err))
	}
	return nil
}

func (a *api) exchange(ctx context.Context, r request) (*http.Response, error) {
	key, err := a.key()
	if err != nil {
		return nil, adapters.Wrap(adapters.KindCredentials, err, "the API key of the pool cannot be read where the configuration says that it is")
	}
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, adapters.Wrap(adapters.KindInternal, err, "the request to the server cannot be written")
		}
		body = bytes.NewReader(text)
	}
	target := a.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the request to the server cannot be made")
	}
	out.Header.Set("X-API-Key", key)
	out.Header.Set("User-Agent", "isthmus")
	out.Header.Set("Accept", "application/json")
	if body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.client.Do(out)
	if err != nil {
		return nil, r.broken(ctx, err)
	}
	return answer, nil
}

// broken classifies a call without an answer: when the connection was never made, nothing can have happened.
func (r request) broken(ctx context.Context, err error) error {
	var op *net.OpError
	if ctx.Err() == nil && errors.As(err, &op) && op.Op == "dial" {
		return adapters.Wrap(adapters.KindUnavailable, err, "the server of the pool cannot be reached")
	}
	return r.lost(ctx, err)
}

// lost classifies a call whose answer was lost.
func (r request) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.makes:
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "the server of the pool gave no answer: the sandbox may or may not have been made")
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "the server of the pool gave no answer")
}
