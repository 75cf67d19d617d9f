package vercel

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

// maxAnswer bounds one answer of the API, in bytes.
const maxAnswer = 32 << 20

// api sends requests to the vendor.
type api struct {
	base   *url.URL
	client *http.Client
	token  func() (string, error)
	team   string
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	body, into   any
	// content is sent instead of a JSON body, with its own headers.
	content io.Reader
	header  http.Header
	// makes says that the call makes something, so that an outcome that is not known must be told from a failure.
	makes bool
}

// send makes one call. The error is one of the contract, or that of ctx.
func (a *api) send(ctx context.Context, r request) error {
	answer, err := a.open(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection is kept
		_ = answer.Body.Close()
	}()
	err = r.read(answer)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // it was not read to its end
	}
	return err
}

// read reads an answer that is no error.
func (r request) read(answer *http.Response) error {
	switch {
	case adapters.IsPage(answer):
		return vendor.Misread(r.makes, nil, "it is a page, "+answer.Status)
	case r.into == nil:
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(r.into); err != nil {
		return vendor.Misread(r.makes, err, adapters.Unreadable(err))
	}
	return nil
}

// open makes one call and returns its answer when it is no error. The caller closes its body.
func (a *api) open(ctx context.Context, r request) (*http.Response, error) {
	out, err := a.request(ctx, r)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(out)
	if err != nil {
		return nil, r.broken(ctx, err)
	}
	if answer.StatusCode/100 != 2 {
		defer func() { _ = answer.Body.Close() }()
		err := failure(answer, r.makes)
		if adapters.MisreadOf(err) != nil && ctx.Err() != nil {
			return nil, ctx.Err() // it was not read to its end
		}
		return nil, err
	}
	return answer, nil
}

func (a *api) request(ctx context.Context, r request) (*http.Request, error) {
	token, err := a.token()
	if err != nil {
		return nil, adapters.Wrap(adapters.KindCredentials, err, "the access token of the pool cannot be read where the configuration says that it is")
	}
	content := r.content
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, adapters.Wrap(adapters.KindInternal, err, "the request to Vercel cannot be written")
		}
		content = bytes.NewReader(text)
	}
	query := url.Values{"teamId": {a.team}}
	for key, values := range r.query {
		query[key] = values
	}
	target := a.base.JoinPath(r.path)
	target.RawQuery = query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.method, target.String(), content)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the request to Vercel cannot be made")
	}
	out.Header.Set("Authorization", "Bearer "+token)
	out.Header.Set("User-Agent", "isthmus")
	if r.body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.header {
		out.Header[name] = values
	}
	return out, nil
}

// broken classifies a call without an answer: when the connection was never made, nothing can have happened.
func (r request) broken(ctx context.Context, err error) error {
	var op *net.OpError
	if ctx.Err() == nil && errors.As(err, &op) && op.Op == "dial" {
		return adapters.Wrap(adapters.KindUnavailable, err, "Vercel cannot be reached")
	}
	return r.lost(ctx, err)
}

// lost classifies a call whose answer was lost.
func (r request) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.makes:
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "Vercel gave no answer: the sandbox may or may not have been made")
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "Vercel gave no answer")
}
