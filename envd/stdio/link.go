package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// ErrClosed says that the stream has ended.
var ErrClosed = errors.New("the stream into the box has ended")

// Link is the facade's end of one stream. It is safe for concurrent use.
type Link struct {
	pipe   *pipe
	client *http.ClientConn
}

// Open begins to speak over a stream, which belongs to the link from then on.
func Open(ctx context.Context, stream io.ReadWriteCloser) (*Link, error) {
	p := newPipe(stream)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p, nil },
		HTTP2:       &http.HTTP2Config{MaxReceiveBufferPerStream: window, SendPingTimeout: quiet, PingTimeout: answerTime},
	}
	client, err := transport.NewClientConn(ctx, "http", "envd:80")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a link: %w", err), p.Close())
	}
	return &Link{pipe: p, client: client}, nil
}

// Done is closed when the stream has ended.
func (l *Link) Done() <-chan struct{} { return l.pipe.closed }

// Alive reports whether connections can still be opened.
func (l *Link) Alive() bool {
	select {
	case <-l.pipe.closed:
		return false
	default:
		return l.client.Err() == nil
	}
}

// Close ends the stream and every connection over it.
func (l *Link) Close() error {
	return errors.Join(l.client.Close(), l.pipe.Close())
}

// Dial opens a connection to the daemon. ctx bounds the opening only.
func (l *Link) Dial(ctx context.Context) (net.Conn, error) {
	life, end := context.WithCancelCause(context.Background())
	body, in := io.Pipe()
	request, err := http.NewRequestWithContext(life, http.MethodPost, "http://envd"+routeConnect, body)
	if err != nil {
		end(err)
		return nil, err
	}
	opening := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	response, err := l.client.RoundTrip(request)
	if !opening() || err != nil {
		end(ErrClosed)
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, cmpErr(ctx.Err(), err)
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		_ = response.Body.Close()
		end(ErrClosed)
		return nil, fmt.Errorf("the box refuses a connection to envd: %s", strings.TrimSpace(string(text)))
	}
	return newConn(life, end, in, response.Body), nil
}

// cmpErr is the first error that there is.
func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
