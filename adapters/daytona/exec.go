package daytona

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/isthmus/isthmus/adapters"
)

// runner runs a program whose input and output pass the daemon unharmed. A session has neither an end of input nor
// clean bytes of output, so both are lines of base64: the input ends with a dot, the output with the exit code. The
// first line says whether there is such a program.
const runner = `[ -f "$1" ] && [ -x "$1" ] || { echo -; exit; }
d=$(mktemp -d) && mkfifo "$d/in" && exec 5<&0 || exit
echo +
{ while IFS= read -r l && [ "$l" != . ]; do printf %s "$l" | base64 -d; done <&5 >"$d/in"; } &
k=$!
{ "$@" <"$d/in" 5<&- 2>&1; echo $? >"$d/code"; } | base64
kill $k 2>/dev/null
c=$(cat "$d/code"); rm -rf "$d"; echo "=$c"`

// piece is the most of an input that one call carries, in bytes.
const piece = 48 << 10

const (
	// maxLine bounds a line of the output, in bytes: base64 makes them of 76.
	maxLine = 64 << 10
	// maxFrame bounds a frame of the stream, in bytes.
	maxFrame = 4 << 20
)

// closeTime bounds the letting go of a program.
const closeTime = 10 * time.Second

// program is one program that runs in a session of its own.
type program struct {
	p       *Provider
	session *url.URL // of the toolbox, to the session
	command string   // its id
	logs    *websocket.Conn
	lines   *bufio.Reader
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	once    sync.Once

	out  []byte // decoded and not read yet
	code int
	err  error // at the end of the output
}

// Exec starts a program in a box as root.
func (p *Provider) Exec(ctx context.Context, boxID string, argv []string) (adapters.Execution, error) {
	var started *program
	err := p.inside(ctx, boxID, func(toolbox *url.URL) error {
		var err error
		started, err = p.begin(ctx, toolbox, argv)
		return err
	})
	if err != nil {
		return nil, err
	}
	first, err := started.first(ctx)
	if err == nil && first != "+" && first != "-" {
		err = vendor.Unread(adapters.KindUnavailable, nil, "the output of a program does not begin as it should")
	}
	if err == nil && first == "-" {
		err = adapters.Errorf(adapters.KindPrecondition, "there is no program %s in the sandbox", argv[0])
	}
	if err != nil {
		_ = started.Close()
		return nil, err
	}
	return started, nil
}

// begin opens a session, hands it the program and follows its output.
func (p *Provider) begin(ctx context.Context, toolbox *url.URL, argv []string) (*program, error) {
	id := "isthmus-" + strings.ToLower(rand.Text())
	err := p.api.send(ctx, request{method: http.MethodPost, at: toolbox, path: "/process/session", body: map[string]string{"sessionId": id}})
	if err != nil {
		return nil, err
	}
	started := &program{p: p, session: toolbox.JoinPath("/process/session/", id)}
	started.ctx, started.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var said struct {
		ID string `json:"cmdId"`
	}
	body := map[string]any{"command": "sh -c " + quote(runner) + " sh " + quoteAll(argv), "runAsync": true, "suppressInputEcho": true}
	err = p.api.send(ctx, request{method: http.MethodPost, at: started.session, path: "/exec", body: body, into: &said})
	if err == nil && said.ID == "" {
		err = vendor.Unread(adapters.KindUnavailable, nil, "it does not say which program was started")
	}
	if err == nil {
		started.command = said.ID
		err = started.follow(ctx)
	}
	if err != nil {
		_ = started.Close()
		return nil, err
	}
	return started, nil
}

// follow opens the stream of the command's output.
func (e *program) follow(ctx context.Context) error {
	header, err := e.p.api.header()
	if err != nil {
		return err
	}
	target := e.session.JoinPath("command", e.command, "logs")
	target.RawQuery = "follow=true"
	ws, answer, err := websocket.Dial(ctx, target.String(), &websocket.DialOptions{HTTPClient: e.p.api.client, HTTPHeader: header})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case answer != nil && answer.StatusCode != http.StatusSwitchingProtocols && answer.StatusCode/100 != 2 && answer.Body != nil:
		return failure(answer, false)
	default:
		return adapters.Wrap(adapters.KindUnavailable, err, "the output of a program in the sandbox cannot be followed")
	}
	ws.SetReadLimit(maxFrame)
	e.logs, e.lines = ws, bufio.NewReaderSize(&demultiplexer{next: e.frame, label: markOut}, maxLine)
	return nil
}

// frame reads the next frame of the stream.
func (e *program) frame() ([]byte, error) {
	_, text, err := e.logs.Read(e.ctx)
	if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
		return nil, io.EOF
	}
	return text, err
}

// line reads the next line, without its end. One that is too long is not of the runner: the stream is broken.
func (e *program) line() (string, error) {
	line, err := e.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("a line has more than %d bytes: %w", maxLine, err)
	}
	return strings.TrimSpace(string(line)), err
}

// first reads the first line within ctx.
func (e *program) first(ctx context.Context) (string, error) {
	defer context.AfterFunc(ctx, e.cancel)()
	line, err := e.line()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", adapters.Misunderstood(adapters.KindUnavailable, err, "a program could not be started in the sandbox: the stream of its output was cut")
	}
	return line, nil
}

// errCut says that the stream ended before the program did.
var errCut = errors.New("the stream of the program's output was cut")

// Read reads what the program wrote.
func (e *program) Read(b []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.out, e.err = e.next()
	}
	n := copy(b, e.out)
	e.out = e.out[n:]
	return n, nil
}

// next reads what the next line has of the output; io.EOF at its end, with which comes the exit code.
func (e *program) next() ([]byte, error) {
	text, err := e.line()
	var out []byte
	if code, is := strings.CutPrefix(text, "="); is {
		if e.code, err = strconv.Atoi(code); err == nil {
			return nil, io.EOF
		}
	} else {
		var decodeErr error
		if out, decodeErr = base64.StdEncoding.DecodeString(text); decodeErr != nil {
			err = decodeErr
		}
	}
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	if err != nil {
		err = e.broken(err)
	}
	return out, err
}

// broken classifies an output that does not end as it should: unless nobody waits for it any more, it is not understood.
func (e *program) broken(err error) error {
	const message = "the output of a program in the sandbox broke off"
	if e.ctx.Err() != nil {
		return adapters.Wrap(adapters.KindUnavailable, err, message)
	}
	return adapters.Misunderstood(adapters.KindUnavailable, err, message)
}

// Write hands input to the program.
func (e *program) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n := min(len(b), piece)
		if err := e.input(base64.StdEncoding.EncodeToString(b[:n])); err != nil {
			return written, err
		}
		written, b = written+n, b[n:]
	}
	return written, nil
}

// CloseWrite ends the program's input.
func (e *program) CloseWrite() error { return e.input(".") }

func (e *program) input(line string) error {
	err := e.p.api.send(e.ctx, request{
		method: http.MethodPost, at: e.session, path: "/command/" + e.command + "/input", body: map[string]string{"data": line + "\n"},
	})
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		return nil // it has ended, and reads nothing any more
	}
	return err
}

// Wait reads what is left of the output, and returns the exit code.
func (e *program) Wait(ctx context.Context) (int, error) {
	defer context.AfterFunc(ctx, e.cancel)()
	_, err := io.Copy(io.Discard, struct{ io.Reader }{e})
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return e.code, err
}

// Close ends the session, and with it the program; what it left in a session of its own goes on.
func (e *program) Close() error {
	e.once.Do(func() {
		e.cancel()
		if e.logs != nil {
			_ = e.logs.CloseNow()
		}
		ctx, done := context.WithTimeout(context.WithoutCancel(e.ctx), closeTime)
		defer done()
		err := e.p.api.send(ctx, request{method: http.MethodDelete, at: e.session})
		if err != nil && adapters.KindOf(err) != adapters.KindNotFound {
			e.p.log.Debug("a session was left in a sandbox", "err", err)
		}
	})
	return nil
}
