package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/translate"
	"github.com/labstack/echo/v4"
)

const (
	// maxBody is the largest request body, in bytes.
	maxBody = 16 << 20
	// maxTime bounds a call: longer than a client waits for a create (60 s), so that the client's own
	// time-out is the one that is seen.
	maxTime = 70 * time.Second
	// requestIDHeader names a call in the log and in the answer.
	requestIDHeader = "X-Request-Id"
)

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// observe names the call and logs one line when it is over. The line has no query, no body and no header:
// they can hold what is nobody's business.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start, r := time.Now(), c.Request()
		id := c.Request().Header.Get(requestIDHeader)
		if !requestIDPattern.MatchString(id) {
			id = newRequestID()
		}
		c.Response().Header().Set(requestIDHeader, id)
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		s.note(c, err, time.Since(start), r.Context().Err() != nil)
		return nil
	}
}

// note writes the call's line. What became of a call whose client has left is no fault of ours.
func (s *server) note(c echo.Context, err error, took time.Duration, left bool) {
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method),
		slog.String("route", c.Path()),
		slog.Int("status", c.Response().Status),
		slog.Duration("took", took),
		slog.Int64("bytes", c.Response().Size),
		slog.String("request", c.Response().Header().Get(requestIDHeader)),
	}
	if sandbox, err := translate.SandboxID(c.Param("sandboxID")); err == nil {
		attrs = append(attrs, slog.String("sandbox", sandbox))
	}
	if identity := auth.From(c.Request().Context()); identity.Team.ID != "" {
		attrs = append(attrs, slog.Any("caller", identity))
	}
	if left {
		attrs = append(attrs, slog.Bool("client_left", true))
	}
	level := slog.LevelInfo
	status := c.Response().Status
	if err != nil && !left && status >= 500 && status != http.StatusNotImplemented { // 501 is the client's doing
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
		if cause := errors.Unwrap(translate.FailureOf(err)); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
	}
	s.log.LogAttrs(c.Request().Context(), level, "call", attrs...)
}

func newRequestID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime ends the program first
	return hex.EncodeToString(random[:])
}

// recovered turns a panic into a 500, or into a broken connection when the answer has begun: a clean end
// would pass for a whole answer.
func (s *server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler {
				panic(cause)
			}
			s.log.ErrorContext(c.Request().Context(), "panic",
				slog.String("route", c.Path()), slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
			if c.Response().Committed {
				panic(http.ErrAbortHandler)
			}
			err = fmt.Errorf("panic: %v", cause)
		}()
		return next(c)
	}
}

// limited bounds a call's time and the size of its body, which must arrive in that time.
func limited(most time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			if r.ContentLength > maxBody {
				return errTooLarge()
			}
			r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, maxBody)
			if r.ContentLength != 0 {
				_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(most)) // a test's recorder has none
			}
			ctx, cancel := context.WithTimeout(r.Context(), most)
			defer cancel()
			c.SetRequest(r.WithContext(ctx))
			return next(c)
		}
	}
}

func errTooLarge() error {
	return &translate.Failure{Status: http.StatusRequestEntityTooLarge, Message: "The body is larger than 16 MiB."}
}
