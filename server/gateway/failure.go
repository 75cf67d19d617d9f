package gateway

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/tunnel"
	"github.com/isthmus/isthmus/translate"
)

// newsOfTheEnd is how long a failed connection to envd waits for the news that the sandbox has ended, before
// it is said that the sandbox is there and cannot be reached. Clients take the two very differently.
const newsOfTheEnd = 250 * time.Millisecond

const (
	messageUnreachable = "The sandbox cannot be reached at the moment. It is kept: try again"
	messagePortBroke   = "The sandbox is running but the connection to the port ended before there was an answer"
	messageBody        = "The request body could not be read: send it again, with a correct length or correct chunks"
)

// failed answers when there is no answer from the sandbox. It is the reverse proxy's error handler.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	switch x.fail(w.Header()) {
	case ofSandboxEnd:
		x.target.gone(w, r)
	case ofClientGone:
		panic(http.ErrAbortHandler)
	case ofClientBody:
		x.target.refuse(w, r, http.StatusBadRequest, messageBody)
	case ofUpstream:
		g.noAnswer(w, r, x, err)
	}
}

// noAnswer answers when the way into the sandbox failed.
func (g *Gateway) noAnswer(w http.ResponseWriter, r *http.Request, x *exchange, err error) {
	var dial *dialError
	switch {
	case errors.Is(err, tunnel.ErrPortClosed):
		x.target.portClosed(w, r)
		return
	case x.endsSoon():
		x.target.gone(w, r)
		return
	}
	g.log.LogAttrs(r.Context(), slog.LevelWarn, "no answer from a sandbox",
		slog.String("sandbox", x.target.sandboxID), slog.Int("port", int(x.target.port)),
		slog.Bool("dial", errors.As(err, &dial)), slog.String("error", err.Error()))
	if x.target.port == envd.Port {
		x.target.fault(w, r, &adapters.Error{Kind: adapters.KindUnavailable, Message: messageUnreachable})
		return
	}
	write(w, r, answer{SandboxID: x.target.sandboxID, Message: messagePortBroke, Port: x.target.port, Code: http.StatusBadGateway})
}

// endsSoon waits for a moment for the sandbox to end.
func (x *exchange) endsSoon() bool {
	timer := time.NewTimer(newsOfTheEnd)
	defer timer.Stop()
	select {
	case <-x.pool.ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// refuseRoute answers when the sandbox has no route.
func (g *Gateway) refuseRoute(w http.ResponseWriter, r *http.Request, target target, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	var known *adapters.Error
	if !errors.As(err, &known) {
		g.log.LogAttrs(r.Context(), slog.LevelError, "no route to a sandbox",
			slog.String("sandbox", target.sandboxID), slog.String("error", err.Error()))
	}
	target.fault(w, r, err)
}

// fault answers with an error of finding or reaching the sandbox: on the daemon's RPC paths as Connect words
// it, elsewhere as plain JSON. Only for a sandbox that has ended it is a 502; a 503 or 504, which clients read
// the same way, it never is.
func (t target) fault(w http.ResponseWriter, r *http.Request, err error) {
	envd, plain := translate.EnvdFailureOf(err), translate.FailureOf(err)
	if envd.Gone {
		t.gone(w, r)
		return
	}
	if plain.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(plain.RetryAfter.Seconds()))))
	}
	if t.rpc == notRPC {
		t.refuse(w, r, min(plain.Status, http.StatusInternalServerError), plain.Message)
		return
	}
	writeRPC(w, r, t.rpc, envd.Status, rpcError{Code: envd.Code, Message: envd.Message})
}

type rpcError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// endOfStream is the flag of a Connect stream's last frame.
const endOfStream = 2

// writeRPC answers a call: a unary one with a status, a stream with a frame that ends it.
func writeRPC(w http.ResponseWriter, r *http.Request, kind rpc, status int, e rpcError) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store")
	answerUnread(w, r)
	if kind == unaryRPC {
		body, _ := json.Marshal(e) // two strings always marshal
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(body) // a client that has gone gets no answer
		return
	}
	body, _ := json.Marshal(struct {
		Error rpcError `json:"error"`
	}{e})
	frame := binary.BigEndian.AppendUint32([]byte{endOfStream}, uint32(len(body)))
	h.Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(frame, body...))
}

// answerUnread lets an answer go out at once although the body was not read: net/http would wait for a stalled
// upload first.
func answerUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerFor))
	}
}
