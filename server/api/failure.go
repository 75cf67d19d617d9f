package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/translate"
	"github.com/labstack/echo/v4"
)

// fail writes every error of the control plane, whatever it comes from, as the Error object: SDKs read code
// and message of each, and take an answer without a body for success.
func (s *server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	failure := failureOf(err, c)
	header := c.Response().Header()
	header.Set("Content-Type", "application/json")
	if failure.RetryAfter > 0 {
		seconds := (failure.RetryAfter + time.Second - 1) / time.Second
		header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if failure.Retry != translate.RetryUnsaid {
		header.Set("Should-Retry", string(failure.Retry))
	}
	c.Response().WriteHeader(failure.Status)
	body := json.NewEncoder(c.Response())
	body.SetEscapeHTML(false)       // it is read by people, in a terminal
	_ = body.Encode(failure.Body()) // the client is gone: nobody to tell
}

// failureOf adds the router's and the generated code's own errors to what translate knows.
func failureOf(err error, c echo.Context) *translate.Failure {
	var routed *echo.HTTPError
	if !errors.As(err, &routed) {
		return translate.FailureOf(err)
	}
	failure := &translate.Failure{Status: routed.Code, Message: fmt.Sprint(routed.Message), Err: routed.Internal}
	switch routed.Code {
	case http.StatusNotFound:
		failure.Message = "No operation has this path: " + c.Request().URL.EscapedPath()
	case http.StatusMethodNotAllowed:
		failure.Message = "This path takes " + c.Response().Header().Get("Allow") + ", not " + c.Request().Method + "."
	}
	return failure
}
