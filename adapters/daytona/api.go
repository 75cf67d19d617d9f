package daytona

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

const (
	// maxAnswer bounds one answer of the server, in bytes: a page of sandboxes with all their variables.
	maxAnswer = 32 << 20
	// maxMessage bounds what is repeated of a server's message.
	maxMessage = 300
	// sdkVersion is the version of the vendor's SDK whose wire form is spoken: servers look at it.
	sdkVersion = "0.218.0"
)

// api sends requests to the control plane, and to the daemons in sandboxes.
type api struct {
	base   *url.URL
	client *http.Client
	key    func() (string, error)
}

// request is one call.
type request struct {
	method string
	// at is the base, when it is not that of the API.
	at    *url.URL
	path  string
	query url.Values
	body  any
	// content is sent instead of body, as it is.
	content     io.Reader
	contentType string
	into        any
	// makes says that the call makes something, so that an outcome that is not known must be told from a failure.
	makes bool
}

// readTries is how often something is read that cannot be had at the moment.
const readTries = 3

// send makes one call, and one that only reads again when it was not answered. The error is one of the contract, or
// that of ctx.
func (a *api) send(ctx context.Context, r request) error {
	pause := firstWait
	for try := 1; ; try++ {
		err := a.once(ctx, r)
		if r.method != http.MethodGet || try == readTries || adapters.KindOf(err) != adapters.KindUnavailable || wait(ctx, &pause) != nil {
			return err
		}
	}
}

// once makes one call.
func (a *api) once(ctx context.Context, r request) error {
	answer, err := a.exchange(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection is kept
		_ = answer.Body.Close()
	}()
	err = r.read(answer)
	if adapters.MisreadOf(err) != nil && ctx.Err() != nil {
		return ctx.Err() // it was not read to its end
	}
	return err
}

// read reads an answer.
func (r request) read(answer *http.Response) error {
	switch {
	case answer.StatusCode/100 != 2:
		return failure(answer, r.makes)
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

func (a *api) exchange(ctx context.Context, r request) (*http.Response, error) {
	header, err := a.header()
	if err != nil {
		return nil, err
	}
	body, contentType := r.content, r.contentType
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, adapters.Wrap(adapters.KindInternal, err, "the request to Daytona cannot be written")
		}
		body, contentType = bytes.NewReader(text), "application/json"
	}
	base := a.base
	if r.at != nil {
		base = r.at
	}
	target := base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, adapters.Wrap(adapters.KindInternal, err, "the request to Daytona cannot be made")
	}
	out.Header = header
	out.Header.Set("Accept", "application/json")
	if body != nil {
		out.Header.Set("Content-Type", contentType)
	}
	answer, err := a.client.Do(out)
	if err != nil {
		return nil, r.broken(ctx, err)
	}
	return answer, nil
}

// header is what every request carries.
func (a *api) header() (http.Header, error) {
	key, err := a.key()
	if err != nil {
		return nil, adapters.Wrap(adapters.KindCredentials, err, "the API key of the pool cannot be read where the configuration says that it is")
	}
	return http.Header{
		"Authorization": {"Bearer " + key}, "User-Agent": {"isthmus"}, "X-Daytona-Source": {"isthmus"},
		"X-Daytona-Sdk-Version": {sdkVersion}, "X-Daytona-Split-Output": {"true"},
	}, nil
}

// broken classifies a call without an answer: when the connection was never made, nothing can have happened.
func (r request) broken(ctx context.Context, err error) error {
	var op *net.OpError
	if ctx.Err() == nil && errors.As(err, &op) && op.Op == "dial" {
		return adapters.Wrap(adapters.KindUnavailable, err, "Daytona cannot be reached")
	}
	return r.lost(ctx, err)
}

// lost classifies a call whose answer was lost.
func (r request) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.makes:
		return adapters.Wrap(adapters.KindUnknownOutcome, err, "Daytona gave no answer: it may or may not have been done")
	}
	return adapters.Wrap(adapters.KindUnavailable, err, "Daytona gave no answer")
}

// The waits between two looks at something that changes.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = time.Second
	// changeTime bounds how long a state may be in the way of a call.
	changeTime = 2 * time.Minute
)

// wait waits between two looks, longer each time; an error when ctx ends.
func wait(ctx context.Context, pause *time.Duration) error {
	*pause = min(max(*pause*3/2, firstWait), lastWait)
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// insist makes a call again while another change of the same sandbox is under way, which is a 409.
func (a *api) insist(ctx context.Context, r request) error {
	bounded, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	for pause := time.Duration(0); ; {
		err := a.send(bounded, r)
		if !changing(err) {
			return err
		}
		if wait(bounded, &pause) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}
