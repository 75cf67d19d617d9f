package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"
)

// maxHello bounds what is looked at of the beginning of a connection, in bytes.
const maxHello = 64 << 10

// handshake is the first byte of TLS: the type of a record.
const handshake = 22

// hello is what a program in the box said first.
type hello struct {
	// said is all that was read, to be passed on.
	said []byte
	// speaks is whether it is TLS or HTTP, which name the server; name is empty when it should have been named and
	// was not, or not so that everybody understands the same.
	speaks bool
	name   string
}

// listenTo reads the beginning of a connection until it is clear whom it is for. It never fails: what cannot be read
// is short, and whoever reads on sees why.
func listenTo(from io.Reader) hello {
	var said bytes.Buffer
	r := bufio.NewReader(io.TeeReader(io.LimitReader(from, maxHello), &said))
	h := hello{}
	switch first, err := r.Peek(1); {
	case err != nil:
	case first[0] == handshake:
		h.speaks, h.name = true, serverName(r)
	default:
		h.speaks, h.name = requestHost(r)
	}
	h.said = said.Bytes()
	return h
}

// errHeard ends a handshake whose first message was read.
var errHeard = errors.New("heard")

// serverName reads a ClientHello. The standard library knows how; it writes to nobody.
func serverName(r io.Reader) string {
	name := ""
	_ = tls.Server(deaf{r}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = plain(h.ServerName)
		return nil, errHeard
	}}).Handshake()
	return name
}

// requestLine is the end of the first line of a request.
var requestLine = regexp.MustCompile(`(?i)\sHTTP/[0-9.]+\s*$`)

// requestHost reads a request of HTTP/1 and returns for which host it is. A line of text that is no request belongs to
// another protocol; text without a line's end is taken for a request that hides.
func requestHost(r *bufio.Reader) (speaks bool, host string) {
	line, text := peekLine(r)
	switch {
	case !text:
		return false, ""
	case line != "" && !requestLine.MatchString(line):
		return false, ""
	}
	request, err := http.ReadRequest(r)
	if err != nil || request.URL.Host != "" || request.Method == http.MethodConnect {
		return true, "" // for a proxy, or not understood
	}
	host = request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return true, plain(host)
}

// peekLine returns the first line that is not empty, when what comes is text; empty: there is no end of the line.
func peekLine(r *bufio.Reader) (line string, text bool) {
	for size := 1; ; size++ {
		seen, err := r.Peek(size)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", len(bytes.TrimSpace(seen)) > 0
		}
		if err != nil {
			return "", true
		}
		switch last := seen[len(seen)-1]; {
		case last == '\n':
			if found := bytes.TrimSpace(seen); len(found) > 0 {
				return string(found), true
			}
		case last < ' ' && last != '\t' && last != '\r', last >= 0x7f:
			return "", false
		}
	}
}

// deaf is a connection that can be read only.
type deaf struct{ r io.Reader }

func (d deaf) Read(b []byte) (int, error)       { return d.r.Read(b) }
func (d deaf) Write(b []byte) (int, error)      { return len(b), nil }
func (d deaf) Close() error                     { return nil }
func (d deaf) LocalAddr() net.Addr              { return nil }
func (d deaf) RemoteAddr() net.Addr             { return nil }
func (d deaf) SetDeadline(time.Time) error      { return nil }
func (d deaf) SetReadDeadline(time.Time) error  { return nil }
func (d deaf) SetWriteDeadline(time.Time) error { return nil }
