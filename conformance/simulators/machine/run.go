//go:build linux

package machine

import (
	"bytes"
	"context"
	"io"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// Run runs a program without input to its end and returns its outputs, of each at most the first MiB.
func (b *Box) Run(ctx context.Context, c Command) (stdout, stderr []byte, exit Exit, err error) {
	p, err := b.Start(ctx, c)
	if err != nil {
		return nil, nil, Exit{}, err
	}
	defer p.Close()
	defer context.AfterFunc(ctx, p.Close)()
	var reading errgroup.Group
	reading.Go(func() (err error) { stdout, err = readSome(p.Stdout()); return err })
	reading.Go(func() (err error) { stderr, err = readSome(p.Stderr()); return err })
	if err := reading.Wait(); err != nil && ctx.Err() == nil {
		return nil, nil, Exit{}, b.broken(ctx, err)
	}
	exit, err = p.Wait(ctx)
	return stdout, stderr, exit, err
}

// maxRun bounds each output of Run in bytes.
const maxRun = 1 << 20

// readSome reads a stream to its end and keeps its beginning.
func readSome(r io.Reader) ([]byte, error) {
	var kept bytes.Buffer
	_, err := io.Copy(&kept, io.LimitReader(r, maxRun))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return kept.Bytes(), err
}

// sh runs a line of shell as root, with arguments, and returns what it said. KindPrecondition when it failed.
func (b *Box) sh(ctx context.Context, line string, args ...string) (string, error) {
	_, said, exit, err := b.Run(ctx, Command{Argv: append([]string{"/bin/sh", "-c", line, "sh"}, args...), Dir: "/"})
	text := strings.TrimSpace(string(said))
	if err == nil && exit.Code != 0 {
		err = adapters.Errorf(adapters.KindPrecondition, "it ended with %d: %s", exit.Code, text)
	}
	return text, err
}

// prover adds the proof that a call is the cloud's.
type prover struct{ transport string }

// WrapUnary adds it to a call.
func (p *prover) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		r.Header().Set(envd.HeaderTransport, p.transport)
		return next(ctx, r)
	}
}

// WrapStreamingClient adds it to a stream.
func (p *prover) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(envd.HeaderTransport, p.transport)
		return conn
	}
}

// WrapStreamingHandler is of the other side.
func (p *prover) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
