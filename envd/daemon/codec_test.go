package daemon

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/envd/process"
)

func dataEvent(d *process.ProcessEvent_DataEvent) *process.ProcessEvent {
	return &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: d}}
}

func stdout(b []byte) *process.ProcessEvent {
	return dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: b}})
}

func TestTheShortWayIsReadAsTheLongOne(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, m := range map[string]proto.Message{
		"stdout":       &process.StartResponse{Event: stdout(every)},
		"one byte":     &process.StartResponse{Event: stdout([]byte{0xff})},
		"empty":        &process.StartResponse{Event: stdout(nil)},
		"connect":      &process.ConnectResponse{Event: stdout([]byte("a\nb"))},
		"stderr":       &process.StartResponse{Event: dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stderr{Stderr: every}})},
		"pty":          &process.StartResponse{Event: dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Pty{Pty: every}})},
		"no output":    &process.StartResponse{Event: dataEvent(&process.ProcessEvent_DataEvent{})},
		"no event":     &process.StartResponse{},
		"start":        &process.StartResponse{Event: &process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: 7}}}},
		"keepalive":    &process.ConnectResponse{Event: &process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}},
		"another call": &process.ListResponse{Processes: []*process.ProcessInfo{{Pid: 7}}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := jsonCodec{}.MarshalAppend([]byte("before"), m)
			require.NoError(t, err)
			text, found := bytes.CutPrefix(text, []byte("before"))
			require.True(t, found)
			long, err := protojson.Marshal(m)
			require.NoError(t, err)
			require.JSONEq(t, string(long), string(text))
			back := m.ProtoReflect().New().Interface()
			require.NoError(t, jsonCodec{}.Unmarshal(text, back))
			require.True(t, proto.Equal(m, back))
		})
	}
	_, err := jsonCodec{}.Marshal("text")
	require.Error(t, err)
	require.Error(t, jsonCodec{}.Unmarshal(nil, &process.StartResponse{}))
	require.Error(t, jsonCodec{}.Unmarshal([]byte("{}"), "text"))
}

// TestEveryLengthIsEncodedAsTheStandardLibraryDoes covers where the encoder changes from many bytes at a time to few.
func TestEveryLengthIsEncodedAsTheStandardLibraryDoes(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for size := range data {
		text := appendData(nil, "stdout", data[:size])
		require.Equal(t, `{"event":{"data":{"stdout":"`+base64.StdEncoding.EncodeToString(data[:size])+`"}}}`, string(text))
	}
}

func BenchmarkData(b *testing.B) {
	m := &process.StartResponse{Event: stdout(make([]byte, 32<<10))}
	b.SetBytes(32 << 10)
	b.Run("short", func(b *testing.B) {
		b.SetBytes(32 << 10)
		var buffer []byte
		for b.Loop() {
			buffer, _ = jsonCodec{}.MarshalAppend(buffer[:0], m)
		}
	})
	b.Run("long", func(b *testing.B) {
		b.SetBytes(32 << 10)
		var buffer []byte
		for b.Loop() {
			buffer, _ = protojson.MarshalOptions{}.MarshalAppend(buffer[:0], m)
		}
	})
}
