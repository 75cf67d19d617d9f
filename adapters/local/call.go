//go:build linux

package local

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// call sends one request of the facade's own to envd in the box. The answer's status is 2xx; its body is the
// caller's to close.
func (b *box) call(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://envd"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(envd.HeaderTransport, b.as().transport)
	req.Header.Set(envd.HeaderControl, b.as().control)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		if !b.alive() {
			return nil, gone(b.as().record.BoxID)
		}
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("envd answered %s %s with %s", method, path, resp.Status)
	}
	return resp, nil
}

// gone says that there is no such box.
func gone(boxID string) *adapters.Error {
	return adapters.Errorf(adapters.KindNotFound, "there is no sandbox %s on this machine", boxID)
}

// asAdapterError keeps errors of the contract and contexts, and makes any other one that of a box which
// cannot be reached at the moment.
func asAdapterError(ctx context.Context, err error, message string) error {
	switch e := err.(type) { //nolint:errorlint // only an error that is one itself passes unchanged
	case nil:
		return nil
	case *adapters.Error:
		return e
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return adapters.Wrap(adapters.KindUnavailable, err, message)
}
