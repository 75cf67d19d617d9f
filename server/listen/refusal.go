package listen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
)

// Requests that net/http cannot parse (a malformed target, headers that are too large, an unknown transfer
// coding) never reach a handler: it writes a plain text answer to the connection itself. Clients of this API
// parse every error as JSON, so that one answer is rewritten on its way out.
const refusalHeaders = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// jsonListener accepts connections whose refusals by net/http are JSON.
type jsonListener struct{ net.Listener }

// Accept waits for the next connection.
func (l jsonListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &jsonConn{Conn: conn}, nil
}

type jsonConn struct{ net.Conn }

// Write passes everything through but a refusal, which is one whole write. An answer of a handler is told
// from it by its Date header, which net/http always sends.
func (c *jsonConn) Write(p []byte) (int, error) {
	answer, ok := refusal(p)
	if !ok {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite ends the direction to the client.
func (c *jsonConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// refusal returns the JSON form of what net/http writes by itself, or false when p is something else.
func refusal(p []byte) ([]byte, bool) {
	const proto = "HTTP/1.1 "
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || !bytes.HasPrefix(line, []byte(proto)) || !bytes.HasPrefix(rest, []byte(refusalHeaders)) {
		return nil, false
	}
	status := string(line[len(proto):])
	if len(status) < 3 {
		return nil, false
	}
	code, err := strconv.Atoi(status[:3])
	if err != nil {
		return nil, false
	}
	body, err := json.Marshal(map[string]any{"code": code, "message": status[3+min(1, len(status)-3):]})
	if err != nil {
		return nil, false
	}
	return fmt.Appendf(nil, "%s%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		proto, status, len(body), body), true
}
