//go:build linux

package modal

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// tunnel is the public address of one port of a sandbox: whatever comes over TLS goes to the port as it is, or
// without TLS where the port was asked for so.
type tunnel struct {
	port     uint32
	raw      bool
	listener net.Listener
	box      *machine.Box
	work     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil: closed
}

// openTunnels opens the ports that were asked for.
func (s *Server) openTunnels(sb *sandbox, box *machine.Box) error {
	for _, spec := range sb.definition.GetOpenPorts().GetPorts() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		if !spec.GetUnencrypted() {
			config := &tls.Config{Certificates: []tls.Certificate{s.ca.leaf}, MinVersion: tls.VersionTLS12}
			if spec.GetTunnelType() == pb.TunnelType_TUNNEL_TYPE_H2 {
				config.NextProtos = []string{"h2"}
			}
			listener = tls.NewListener(listener, config)
		}
		t := &tunnel{port: spec.GetPort(), raw: spec.GetUnencrypted(), listener: listener, box: box, conns: map[net.Conn]bool{}}
		t.work.Go(t.serve)
		sb.mu.Lock()
		sb.tunnels = append(sb.tunnels, t)
		sb.mu.Unlock()
	}
	return nil
}

func (t *tunnel) serve() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		if !t.hold(conn) {
			_ = conn.Close()
			return
		}
		t.work.Go(func() {
			defer t.letGo(conn)
			t.carry(conn)
		})
	}
}

// dialTime bounds the connecting to a port of a box.
const dialTime = 10 * time.Second

func (t *tunnel) carry(conn net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	inner, err := t.box.Dial(ctx, uint16(t.port))
	cancel()
	if err != nil {
		return
	}
	if !t.hold(inner) {
		_ = inner.Close()
		return
	}
	defer t.letGo(inner)
	var back sync.WaitGroup
	back.Go(func() { copyHalf(conn, inner) })
	copyHalf(inner, conn)
	back.Wait()
}

// copyHalf carries one direction and then says that nothing more comes.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, can := to.(interface{ CloseWrite() error }); can && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

func (t *tunnel) hold(conn net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		return false
	}
	t.conns[conn] = true
	return true
}

func (t *tunnel) letGo(conn net.Conn) {
	_ = conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, conn)
}

// busy reports whether somebody is connected.
func (t *tunnel) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) > 0
}

// close ends all connections and returns when they have ended.
func (t *tunnel) close() {
	_ = t.listener.Close()
	t.mu.Lock()
	conns := t.conns
	t.conns = nil
	t.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
	t.work.Wait()
}

// tunnelData are the addresses of the ports. Those of ports without TLS are not known at the create.
func (sb *sandbox) tunnelData(all bool) []*pb.TunnelData {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	var data []*pb.TunnelData
	for _, t := range sb.tunnels {
		host, port := "127.0.0.1", uint32(t.listener.Addr().(*net.TCPAddr).Port)
		switch {
		case !t.raw:
			data = append(data, pb.TunnelData_builder{Host: host, Port: port, ContainerPort: t.port}.Build())
		case all:
			data = append(data, pb.TunnelData_builder{Host: host, Port: port, UnencryptedHost: &host, UnencryptedPort: &port, ContainerPort: t.port}.Build())
		}
	}
	return data
}

// SandboxGetTunnelsV2 returns the addresses of a sandbox's ports.
func (c *control) SandboxGetTunnelsV2(ctx context.Context, r *pb.SandboxGetTunnelsRequest) (*pb.SandboxGetTunnelsResponse, error) {
	return c.tunnelsOf(ctx, r, false)
}

// SandboxGetTunnels returns those of one of the first version.
func (c *control) SandboxGetTunnels(ctx context.Context, r *pb.SandboxGetTunnelsRequest) (*pb.SandboxGetTunnelsResponse, error) {
	return c.tunnelsOf(ctx, r, true)
}

func (c *control) tunnelsOf(ctx context.Context, r *pb.SandboxGetTunnelsRequest, first bool) (*pb.SandboxGetTunnelsResponse, error) {
	sb, err := c.find(r.GetSandboxId(), first)
	if err != nil {
		return nil, err
	}
	wait(ctx, sb.placed, r.GetTimeout())
	outcome := sb.outcome()
	if outcome == nil {
		select {
		case <-sb.placed:
			outcome = result(pb.GenericResult_GENERIC_STATUS_SUCCESS, 0, "")
		default:
			outcome = result(pb.GenericResult_GENERIC_STATUS_TIMEOUT, 0, "")
		}
	}
	return pb.SandboxGetTunnelsResponse_builder{Result: outcome, Tunnels: sb.tunnelData(true)}.Build(), nil
}
