package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/isthmus/isthmus/envd/stdio"
)

// carryStdio joins the facade, at the other end of our standard input and output, to the daemon that runs in
// this box already. The daemon outlives it: after a break the facade starts another one.
func carryStdio(ctx context.Context, to string, in io.ReadCloser, out io.WriteCloser) error {
	network, address := "tcp", to
	if path, ok := strings.CutPrefix(to, "unix:"); ok {
		network, address = "unix", path
	}
	if address == "" {
		return errors.New("--to is needed: unix:PATH or HOST:PORT, the socket of the daemon")
	}
	return stdio.Serve(ctx, streams{in, out}, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	})
}

// streams are the standard ones as one.
type streams struct {
	io.ReadCloser
	io.WriteCloser
}

// Close closes both.
func (s streams) Close() error { return errors.Join(s.ReadCloser.Close(), s.WriteCloser.Close()) }
