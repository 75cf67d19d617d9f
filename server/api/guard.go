package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/openapi/check"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/translate"
	"github.com/labstack/echo/v4"
)

// guard lets a call through to its handler when the operation is served, the caller is known, and the
// request is as the document says.
func (s *server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op, known := s.document.Find(c.Request().Method, c.Path())
		if !known {
			return next(c) // the router's own 404 or 405
		}
		if !wholeSegments(c) {
			return echo.ErrNotFound
		}
		if err := gone(op.ID); err != nil {
			return err
		}
		if err := s.identify(c, op); err != nil {
			return err
		}
		if !op.Served {
			return s.unserved(c, op)
		}
		if err := checked(c, op); err != nil {
			return err
		}
		return next(c)
	}
}

// wholeSegments reports whether every path parameter is one segment with something in it: the router lets a
// parameter at the end of a path swallow slashes, and lets it be empty. An encoded slash is part of a name.
func wholeSegments(c echo.Context) bool {
	return !slices.ContainsFunc(c.ParamValues(), func(v string) bool { return v == "" || strings.Contains(v, "/") })
}

// gone answers the operations that the protocol has dropped.
func gone(operation string) error {
	switch operation {
	case "createTemplate", "rebuildTemplate", "startTemplateBuild":
		return &translate.Failure{Status: http.StatusGone,
			Message: "Template builds by Docker push are gone from the protocol: update the CLI and run `e2b template create`."}
	}
	return nil
}

// identify finds the caller. Operations that need another credential than an API key are not served here and
// say so to everybody.
func (s *server) identify(c echo.Context, op *check.Operation) error {
	if !slices.Contains(op.Schemes, "ApiKey") {
		return nil
	}
	identify := s.auth.APIKey
	if slices.Contains(op.Schemes, "BearerKey") {
		identify = s.auth.APIKeyOrBearer
	}
	identity, err := identify(c.Request())
	if err != nil {
		return err
	}
	c.SetRequest(c.Request().WithContext(auth.With(c.Request().Context(), identity)))
	return s.callers.admit(identity.Key.ID)
}

// checked holds the request against the document and leaves in it what the document names, in the form that
// generated code can bind.
func checked(c echo.Context, op *check.Operation) error {
	r := c.Request()
	for i, name := range c.ParamNames() {
		value, err := url.PathUnescape(c.ParamValues()[i])
		if err != nil {
			return bad(err)
		}
		if err := op.Path(name, value); err != nil {
			return bad(err)
		}
	}
	query, err := op.Query(r.URL.RawQuery)
	if err != nil {
		return bad(err)
	}
	r.URL.RawQuery = query.Encode()
	if err := op.Header(r.Header); err != nil {
		return bad(err)
	}
	if !op.HasBody() {
		return nil
	}
	return checkedBody(r, op)
}

func checkedBody(r *http.Request, op *check.Operation) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return unread(err)
	}
	if len(text) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		return &translate.Failure{Status: http.StatusUnsupportedMediaType,
			Message: "The body must be JSON: send Content-Type: application/json."}
	}
	kept, err := op.Body(text)
	if err != nil {
		return bad(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(kept))
	r.ContentLength = int64(len(kept))
	return nil
}

// isJSON accepts JSON in UTF-8. A body without any type is taken for JSON, as there is nothing else here.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	charset := params["charset"]
	return (kind == "application/json" || strings.HasSuffix(kind, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}

func unread(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errTooLarge()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &translate.Failure{Status: http.StatusRequestTimeout, Message: "The body did not arrive in time."}
	}
	return &translate.Failure{Status: http.StatusBadRequest, Message: "The body could not be read to its end.", Err: err}
}

func bad(err error) error {
	return &translate.Failure{Status: http.StatusBadRequest, Message: err.Error()}
}

// binder decodes bodies that guard has checked.
type binder struct{}

// Bind implements echo.Binder.
func (binder) Bind(into any, c echo.Context) error {
	return json.NewDecoder(c.Request().Body).Decode(into)
}
