package badger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// contextWriter makes a long Backup end with its context.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// contextReader makes a long Load end with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// logger passes on what an operator must see; Badger's chatter about compactions stays quiet.
type logger struct {
	log *slog.Logger
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("badger", "text", line(format, args))
}

func (l logger) Warningf(format string, args ...any) {
	l.log.Warn("badger", "text", line(format, args))
}

func (l logger) Infof(string, ...any) {}

func (l logger) Debugf(string, ...any) {}

func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

// isLocked recognises the error of Badger's directory lock, which has no type of its own.
func isLocked(err error) bool {
	return strings.Contains(err.Error(), "Cannot acquire directory lock")
}
