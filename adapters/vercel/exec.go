package vercel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/isthmus/isthmus/adapters"
)

// launcher says on the command's output that the program is there before it becomes it: the vendor tells a program
// that is missing by an exit code alone, which a program may have too.
const launcher = `test -x "$0" || exit 127; echo +; exec "$0" "$@" 2>&1`

const (
	started = "+\n"
	missing = 127
	// inputPiece bounds one piece of input: the vendor takes bodies of 1 MB.
	inputPiece = 512 << 10
)

// Exec starts a program in the box as root.
func (p *place) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	return p.exec(ctx, boxID, argv, true)
}

// exec starts a program, with an input or without.
func (p *place) exec(ctx context.Context, boxID string, argv []string, input bool) (*execution, error) {
	k, err := p.recall(ctx, boxID)
	if err != nil {
		return nil, err
	}
	e, err := p.launch(ctx, k.session, argv, input)
	if !coded(err, codeStopped) {
		return e, err
	}
	// Nothing was started. The session may be an earlier one of a box that was paused and resumed elsewhere.
	p.forget(boxID)
	fresh, err := p.recall(ctx, boxID)
	if err != nil {
		return nil, err
	}
	if fresh.session == k.session {
		return nil, adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	}
	return p.launch(ctx, fresh.session, argv, input)
}

func (p *place) launch(ctx context.Context, session string, argv []string, input bool) (*execution, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	starting := context.AfterFunc(ctx, end) // ctx bounds the starting
	body := map[string]any{
		"command": "/bin/sh", "args": append([]string{"-c", launcher}, argv...), "cwd": "/", "sudo": true,
		"wait": true, "logs": true, "attachStdin": input,
	}
	path := "/v2/sandboxes/sessions/" + session + "/cmd"
	answer, err := p.api.open(life, request{method: http.MethodPost, path: path, body: body})
	if err != nil {
		end()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	e := &execution{place: p, path: path, end: end, body: answer.Body, lines: json.NewDecoder(answer.Body), life: life}
	err = e.begin(argv[0])
	if starting(); ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// execution is one command. Its output is a stream of JSON lines; its input goes piece by piece, each with the number of
// bytes before it, so that none is written twice.
type execution struct {
	place *place
	path  string // of the session's commands
	id    string
	life  context.Context
	end   context.CancelFunc
	body  io.ReadCloser
	lines *json.Decoder
	once  sync.Once

	left []byte // of the output
	done bool   // the last line was read
	code int
	err  error

	written int64
	closed  bool
}

// line is one line of the stream.
type line struct {
	Command *struct {
		ID       string `json:"id"`
		ExitCode *int   `json:"exitCode"`
	} `json:"command"`
	Stream string          `json:"stream"`
	Data   json.RawMessage `json:"data"`
}

// begin reads up to the word that the program is there.
func (e *execution) begin(program string) error {
	for len(e.left) < len(started) && !e.done {
		e.next()
	}
	switch {
	case bytes.HasPrefix(e.left, []byte(started)):
		e.left = e.left[len(started):]
		return nil
	case e.err != nil:
		return adapters.Wrap(adapters.KindUnavailable, e.err, "it is not known whether the program "+program+" was started in the sandbox")
	case e.code == missing:
		return adapters.Errorf(adapters.KindPrecondition, "there is no program %s in the sandbox", program)
	}
	return adapters.Errorf(adapters.KindUnavailable, "the program %s could not be started in the sandbox: exit %d, %s", program, e.code, clip(string(e.left)))
}

// next reads one line.
func (e *execution) next() {
	var l line
	if err := e.lines.Decode(&l); err != nil {
		e.done, e.err = true, e.cut(err)
		return
	}
	switch {
	case l.Command != nil:
		e.id = l.Command.ID
		if l.Command.ExitCode != nil {
			e.done, e.code = true, *l.Command.ExitCode
		}
	case l.Stream == "error":
		var said struct{ Code, Message string }
		_ = json.Unmarshal(l.Data, &said)
		e.done, e.err = true, &apiError{status: http.StatusOK, code: said.Code, message: clip(said.Message)}
	default:
		var text string
		if json.Unmarshal(l.Data, &text) == nil { // what is no text is of a kind that is not known here
			e.left = append(e.left, text...)
		}
	}
}

// cut classifies a stream that ends before its command: unless nobody waits for it any more, it is not understood.
func (e *execution) cut(err error) error {
	const message = "the stream of a command ended before the command"
	if e.life.Err() != nil {
		return errors.Join(errors.New(message), err)
	}
	return adapters.Misunderstood(adapters.KindUnavailable, err, message)
}

// Read reads the program's output, both of its streams.
func (e *execution) Read(b []byte) (int, error) {
	for len(e.left) == 0 {
		if e.done && e.err != nil {
			return 0, e.err
		}
		if e.done {
			return 0, io.EOF
		}
		e.next()
	}
	n := copy(b, e.left)
	e.left = e.left[n:]
	return n, nil
}

// Write writes to the program's input.
func (e *execution) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		piece := b[sent:min(len(b), sent+inputPiece)]
		if err := e.input(map[string]any{"data": piece, "offset": e.written}); err != nil {
			return sent, err
		}
		e.written += int64(len(piece))
		sent += len(piece)
	}
	return sent, nil
}

// CloseWrite ends the program's input.
func (e *execution) CloseWrite() error {
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.input(map[string]any{"close": true})
	if adapters.KindOf(err) == adapters.KindNotFound || adapters.KindOf(err) == adapters.KindInvalid {
		return nil // it has ended, or does not read
	}
	return err
}

func (e *execution) input(body map[string]any) error {
	return e.place.api.send(e.life, request{method: http.MethodPost, path: e.path + "/" + e.id + "/stdin", body: body})
}

// Wait returns the exit code once the output was read.
func (e *execution) Wait(ctx context.Context) (int, error) {
	defer context.AfterFunc(ctx, func() { _ = e.Close() })()
	for !e.done {
		e.next()
		e.left = nil // nobody reads it any more
	}
	if e.err != nil && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return e.code, e.err
}

// Close lets go of the program.
func (e *execution) Close() error {
	e.once.Do(func() {
		e.end()
		_ = e.body.Close()
	})
	return nil
}
