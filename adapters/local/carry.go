//go:build linux

package local

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/isthmus/isthmus/adapters/local/egress"
	"github.com/isthmus/isthmus/adapters/local/inside"
	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

// carryAgain is the pause before a box's traffic is tried again.
const carryAgain = time.Second

// openTraffic takes the descriptors of a box's traffic over and writes the box's rules: from then on what
// the box sends waits to be carried. A box without the internet has none: nil.
func (l *Local) openTraffic(r record, traffic []int) (*egress.Egress, error) {
	if !r.Internet {
		handover.CloseAll(traffic)
		return nil, nil
	}
	p, err := l.ruled(r.BoxID, r.Reach)
	if err != nil {
		handover.CloseAll(traffic)
		return nil, err
	}
	files := make([]*os.File, len(traffic))
	for i, fd := range traffic {
		files[i] = os.NewFile(uintptr(fd), "traffic")
	}
	return egress.Open(files, p, l.flows)
}

// carry serves the box's traffic until it ends or this process lets go of it. Without an opened one, and
// after a failure, it asks PID 1 for the descriptors.
func (l *Local) carry(b *box, opened *egress.Egress) {
	if !b.as().record.Internet {
		return
	}
	l.attend(b, func(ctx context.Context) {
		if opened != nil {
			defer opened.Close() // should the box end before it is served
		}
		for ctx.Err() == nil {
			err := l.carryOnce(ctx, b, opened)
			opened = nil
			if err == nil || ctx.Err() != nil {
				continue
			}
			l.log.Warn("traffic of a box", "box", b.as().record.BoxID, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(carryAgain):
			}
		}
	})
}

func (l *Local) carryOnce(ctx context.Context, b *box, e *egress.Egress) error {
	if e == nil {
		var err error
		if e, err = l.reopenTraffic(ctx, b); err != nil {
			return err
		}
	}
	return e.Serve(ctx)
}

// reopenTraffic takes the box's traffic over again, by the rules as they are then.
func (l *Local) reopenTraffic(ctx context.Context, b *box) (*egress.Egress, error) {
	b.leading.Lock()
	defer b.leading.Unlock()
	b.traffic = nil
	traffic, err := b.hand(ctx, inside.Claim{})
	if err != nil {
		return nil, err
	}
	b.traffic, err = l.openTraffic(b.as().record, traffic)
	return b.traffic, err
}

// hand gets the descriptors of the box's traffic from PID 1, and tells one that was made ahead what it becomes
// or how long it waits for that.
func (b *box) hand(ctx context.Context, claim inside.Claim) ([]int, error) {
	c, err := b.dial(ctx, socketHandover)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	claim.Secret = b.as().control
	if err := handover.Send(conn, claim); err != nil {
		return nil, err
	}
	var ready inside.Ready
	traffic, err := handover.Receive(conn, &ready)
	if err != nil {
		return nil, err
	}
	if ready.Error != "" {
		handover.CloseAll(traffic)
		return nil, errors.New(ready.Error)
	}
	return traffic, nil
}

// hasIPv6 reports whether this machine has a way to public IPv6 addresses. Connecting a datagram socket
// looks the route up and sends nothing.
func hasIPv6() bool {
	c, err := net.Dial("udp6", "[2001:db8::1]:9")
	if err != nil {
		return false
	}
	return c.Close() == nil
}
