package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/envd/process"
	"github.com/isthmus/isthmus/envd/process/processconnect"
)

// Encoding is how a stream's messages are written.
type Encoding string

// The two encodings of Connect.
const (
	JSON   Encoding = "json"
	Binary Encoding = "proto"
)

// A message of a stream stands behind its flags and its length.
const (
	envelope = 5
	flagEnd  = 2
)

// opened is the stream of a command. Its messages are not decoded: what is measured is the server.
type opened struct {
	body io.ReadCloser
}

// start runs a command as the target's user.
func (t *Target) start(ctx context.Context, how Encoding, command string, args ...string) (*opened, error) {
	no := false
	// A home of its own: a login shell reads what somebody has put into the home of the user of this machine.
	config := &process.ProcessConfig{Cmd: command, Args: args, Envs: map[string]string{"HOME": t.Folder}}
	message := &process.StartRequest{Process: config, Stdin: &no}
	text, err := proto.Marshal(message)
	if how == JSON {
		text, err = protojson.Marshal(message)
	}
	if err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+processconnect.ProcessStartProcedure, bytes.NewReader(append(body, text...)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/connect+"+string(how))
	r.Header.Set("Connect-Protocol-Version", "1")
	answer, err := t.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: start: %s", t.Name, answer.Status)
	}
	return &opened{body: answer.Body}, nil
}

// next reads one message into the buffer, which grows, and reports whether it is the last.
func (o *opened) next(buffer []byte) (_ []byte, last bool, _ error) {
	var head [envelope]byte
	if _, err := io.ReadFull(o.body, head[:]); err != nil {
		return buffer, false, err
	}
	size := int(binary.BigEndian.Uint32(head[1:]))
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	_, err := io.ReadFull(o.body, buffer)
	return buffer, head[0]&flagEnd != 0, err
}

// drain reads to the end, and returns the bytes of all messages. An error of the server is one.
func (o *opened) drain() (total int64, _ error) {
	defer o.body.Close()
	buffer := make([]byte, 64<<10)
	for {
		message, last, err := o.next(buffer)
		if err != nil {
			return total, fmt.Errorf("the stream broke off after %d bytes: %w", total, err)
		}
		total += int64(len(message))
		if last {
			if bytes.Contains(message, []byte(`"error"`)) {
				return total, fmt.Errorf("the stream ended with %s", message)
			}
			return total, nil
		}
		buffer = message[:cap(message)]
	}
}

// run runs a command to its end.
func (t *Target) run(ctx context.Context, how Encoding, command string, args ...string) (int64, error) {
	o, err := t.start(ctx, how, command, args...)
	if err != nil {
		return 0, err
	}
	n, err := o.drain()
	if err != nil {
		err = fmt.Errorf("%s: %w", t.Name, err)
	}
	return n, err
}
