package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/segmentio/asm/base64"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/envd/daemon/stack"
	"github.com/isthmus/isthmus/envd/filesystem"
	"github.com/isthmus/isthmus/envd/process"
)

// jsonCodec is Connect's JSON codec with a short way for the events of running processes, which are nearly all that is
// ever sent: reflection over them costs more than twice the time of everything else, and a large stack.
type jsonCodec struct{}

// Name makes it the codec of every JSON content type.
func (jsonCodec) Name() string { return "json" }

// IsBinary says that the messages are text.
func (jsonCodec) IsBinary() bool { return false }

// Marshal encodes a message.
func (c jsonCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend encodes a message behind what is in dst.
func (jsonCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	var event *process.ProcessEvent
	switch m := message.(type) {
	case *process.StartResponse:
		event = m.GetEvent()
	case *process.ConnectResponse:
		event = m.GetEvent()
	}
	switch e := event.GetEvent().(type) {
	case *process.ProcessEvent_Start:
		dst = append(dst, `{"event":{"start":{"pid":`...)
		return append(strconv.AppendUint(dst, uint64(e.Start.GetPid()), 10), `}}}`...), nil
	case *process.ProcessEvent_Keepalive:
		return append(dst, `{"event":{"keepalive":{}}}`...), nil
	}
	switch data := event.GetData().GetOutput().(type) {
	case *process.ProcessEvent_DataEvent_Stdout:
		return appendData(dst, "stdout", data.Stdout), nil
	case *process.ProcessEvent_DataEvent_Stderr:
		return appendData(dst, "stderr", data.Stderr), nil
	case *process.ProcessEvent_DataEvent_Pty:
		return appendData(dst, "pty", data.Pty), nil
	}
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no protobuf message", message)
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, m)
}

func appendData(dst []byte, kind string, data []byte) []byte {
	dst = append(dst, `{"event":{"data":{"`...)
	dst = append(dst, kind...)
	dst = append(dst, `":"`...)
	start, size := len(dst), base64.StdEncoding.EncodedLen(len(data))
	dst = slices.Grow(dst, size)[:start+size]
	base64.StdEncoding.Encode(dst[start:], data)
	return append(dst, `"}}}`...)
}

// Unmarshal decodes a message. Unknown fields are ignored: clients may be newer than the daemon.
func (jsonCodec) Unmarshal(text []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no protobuf message", message)
	}
	if len(text) == 0 {
		return errors.New("zero-length payload is not a valid JSON object")
	}
	var err error
	unmarshal := func() { err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m) }
	switch message.(type) {
	case *process.StartRequest, *process.ConnectRequest, *filesystem.WatchDirRequest: // their calls last
		stack.Apart(unmarshal)
	default:
		unmarshal()
	}
	if err != nil {
		return fmt.Errorf("unmarshal into %T: %w", message, err)
	}
	return nil
}
