package gateway

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// hijackWatcher sees to it that a connection which carries another protocol ends with its exchange: net/http no
// longer ends it then.
type hijackWatcher struct {
	http.ResponseWriter
	exchange *exchange
}

// Unwrap gives http.ResponseController the rest of what the writer can do.
func (w hijackWatcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack takes the connection from net/http, and ties it to the context of the exchange.
func (w hijackWatcher) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.exchange.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.exchange.hijack()
	context.AfterFunc(w.exchange.ctx, func() { _ = conn.Close() })
	return conn, buffered, nil
}

func (x *exchange) hijack() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hijacked = true
}

// withoutUpgrade returns the header without the wish for another protocol.
func withoutUpgrade(h http.Header) http.Header {
	if h.Get("Upgrade") == "" {
		return h
	}
	h = h.Clone()
	h.Del("Upgrade")
	return h
}
