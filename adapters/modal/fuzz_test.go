package modal

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/bootstrap"
)

// raw passes messages on as the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }

var _ encoding.CodecV2 = raw{}

// babble answers every call but that for a token with the same bytes.
func babble(t testing.TB, answer []byte) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	token, err := proto.Marshal(pb.AuthTokenGetResponse_builder{Token: "a.b.c"}.Build())
	require.NoError(t, err)
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		_ = stream.RecvMsg(&request)
		say := answer
		if method, _ := grpc.MethodFromServerStream(stream); method == authMethod {
			say = token
		}
		return stream.SendMsg(&say)
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

// FuzzAnswers has the adapter read answers that make no sense: what comes of it is typed, and never a panic.
func FuzzAnswers(f *testing.F) {
	named := func(m proto.Message) {
		text, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte{})
	f.Add([]byte("<html>502 Bad Gateway</html>"))
	tags := tagsOf(map[string]string{tagID: "box", tagAttempt: "attempt", tagDeployment: "deployment"})
	named(pb.SandboxListResponse_builder{Sandboxes: []*pb.SandboxInfo{pb.SandboxInfo_builder{Id: "sb-1", Tags: tags, CreatedAt: -1}.Build()}}.Build())
	named(pb.SandboxCreateV2Response_builder{SandboxId: "sb-1", TaskId: "ta-1", CommandRouterAccess: pb.CommandRouterAccess_builder{Url: "ftp://[::", Jwt: "x"}.Build()}.Build())
	named(pb.SandboxWaitResponse_builder{Result: pb.GenericResult_builder{Status: 99}.Build()}.Build())
	named(pb.SandboxGetTunnelsResponse_builder{Tunnels: []*pb.TunnelData{pb.TunnelData_builder{Host: "a:b", Port: 99999999}.Build()}}.Build())
	f.Fuzz(func(t *testing.T, answer []byte) {
		p, err := New(Config{URL: babble(t, answer), Key: func() (string, error) { return "a:b", nil }})
		require.NoError(t, err)
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		spec := adapters.Spec{BoxID: "box", Attempt: "attempt", Template: adapters.Template{Name: "base"}, Network: adapters.Network{Internet: true}}
		for _, call := range []func() error{
			func() error { _, err := p.Get(ctx, "box"); return err },
			func() error { _, err := p.List(ctx, "deployment"); return err },
			func() error { _, err := p.Address(ctx, "box"); return err },
			func() error { _, err := p.Snapshots(ctx, "deployment"); return err },
			func() error { _, err := p.Create(ctx, spec); return err },
			func() error { _, err := p.Exec(ctx, "box", []string{"/bin/true"}); return err },
			func() error { return p.Put(ctx, "box", "/f", fs.ModePerm, strings.NewReader("x")) },
			func() error { _, err := p.Snapshot(ctx, spec, "copy"); return err },
			func() error { return p.SetNetwork(ctx, "box", adapters.Network{Internet: true}) },
			func() error { return p.Destroy(ctx, "box") },
		} {
			typed := new(adapters.Error)
			if err := call(); err != nil && !errors.As(err, &typed) && !errors.Is(err, bootstrap.ErrNoAddress) {
				require.ErrorIs(t, err, ctx.Err(), "%T", err)
			}
		}
	})
}
