package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The flags of a Connect envelope.
const (
	flagData = 0
	flagEnd  = 2
)

// maxMessage bounds one message of a stream.
const maxMessage = 8 << 20

// envelope frames one message of a stream.
func envelope(flags byte, message string) string {
	var head [5]byte
	head[0] = flags
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return string(head[:]) + message
}

// frame is one message that was received.
type frame struct {
	flags   byte
	message []byte
}

// connectError is the error of an end frame or of a unary answer.
type connectError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// readFrame reads one message; io.EOF when the stream is over before it.
func readFrame(from io.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxMessage {
		return frame{}, fmt.Errorf("a message of %d bytes", size)
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(from, message); err != nil {
		return frame{}, fmt.Errorf("a message cut short: %w", err)
	}
	return frame{flags: head[0], message: message}, nil
}

// stream is an open server stream.
type stream struct {
	body io.ReadCloser
}

// open starts a server stream at the subject's envd with one JSON message.
func (s *Suite) open(ctx context.Context, method, message string, header http.Header) (*stream, error) {
	request, err := http.NewRequestWithContext(ctx, "POST", s.target.SandboxURL+"/"+method, strings.NewReader(envelope(flagData, message)))
	if err != nil {
		return nil, err
	}
	for name, values := range s.route() {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/connect+json")
	request.Header.Set("Connect-Protocol-Version", "1")
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/connect+json" {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		response.Body.Close()
		return nil, fmt.Errorf("status %d, type %q: %s", response.StatusCode, response.Header.Get("Content-Type"), clip(body))
	}
	return &stream{body: response.Body}, nil
}

func (s *stream) close() { s.body.Close() }

// next reads one message into value. At the end of the stream it returns io.EOF, or the error of the end frame.
func (s *stream) next(value any) error {
	got, err := readFrame(s.body)
	if err != nil {
		return fmt.Errorf("the stream broke off without an end frame: %w", err)
	}
	switch got.flags {
	case flagData:
		return json.Unmarshal(got.message, value)
	case flagEnd:
		return ended(got.message)
	}
	return fmt.Errorf("a frame with flags %d", got.flags)
}

// ended is what an end frame means: io.EOF when all is well.
func ended(message []byte) error {
	var end struct {
		Error *connectError `json:"error"`
	}
	if err := json.Unmarshal(message, &end); err != nil {
		return fmt.Errorf("the end frame is no JSON: %w", err)
	}
	if end.Error == nil {
		return io.EOF
	}
	return &endError{*end.Error}
}

// endError is the error that a stream ended with.
type endError struct{ connectError }

func (e *endError) Error() string { return e.Code + ": " + e.Message }

// codeOf is the Connect code of an error, or empty.
func codeOf(err error) string {
	var end *endError
	if errors.As(err, &end) {
		return end.Code
	}
	return ""
}
