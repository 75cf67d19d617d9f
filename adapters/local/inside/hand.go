//go:build linux

package inside

import (
	"crypto/subtle"
	"errors"
	"net"
	"time"

	"github.com/isthmus/isthmus/adapters/local/inside/handover"
)

// claimTime bounds one exchange on the handover socket.
const claimTime = 5 * time.Second

// hand gives the box's traffic to a facade that proves the control secret, for as long as the box lives. One
// caller at a time: there is one facade.
type hand struct {
	traffic *traffic
	secret  string
	// become takes what a stocked box becomes; nil once it was claimed, or was never stocked.
	become chan Become
	// until takes the time to which a stocked box waits for that.
	until chan time.Time
}

// stocked makes the box one that waits.
func (h *hand) stocked() { h.become, h.until = make(chan Become, 1), make(chan time.Time, 1) }

// await returns what a stocked box becomes. become is taken before serve can forget it.
func await(become <-chan Become, until <-chan time.Time, first time.Time) (Become, error) {
	timer := time.NewTimer(time.Until(first))
	defer timer.Stop()
	for {
		select {
		case next := <-become:
			return next, nil
		case later := <-until:
			timer.Reset(time.Until(later))
		case <-timer.C:
			return Become{}, errors.New("nobody claimed this box")
		}
	}
}

// serve accepts until the listener is closed.
func (h *hand) serve(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(claimTime / 50) // out of descriptors: let others finish
			continue
		}
		h.answer(c)
	}
}

func (h *hand) answer(c *net.UnixConn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(claimTime))
	var claim Claim
	fds, err := handover.Receive(c, &claim)
	if err != nil {
		return
	}
	handover.CloseAll(fds)
	if h.secret == "" || subtle.ConstantTimeCompare([]byte(claim.Secret), []byte(h.secret)) != 1 {
		_ = handover.Send(c, Ready{Error: "the control secret is wrong"})
		return
	}
	if err := h.change(claim); err != nil {
		_ = handover.Send(c, Ready{Error: err.Error()})
		return
	}
	_ = handover.Send(c, Ready{}, h.traffic.descriptors()...)
}

// change does what a claim asks of a stocked box.
func (h *hand) change(claim Claim) error {
	if claim.Become != nil {
		return h.turn(*claim.Become)
	}
	if claim.Open {
		return h.traffic.open()
	}
	if claim.Until.IsZero() {
		return nil
	}
	if h.become == nil {
		return errServes
	}
	h.until <- claim.Until
	return nil
}

// errServes is the answer to what can be asked of stocked boxes only.
var errServes = errors.New("the box serves already")

// turn makes a stocked box what it becomes.
func (h *hand) turn(next Become) error {
	if h.become == nil {
		return errServes
	}
	if err := identity(next.Hostname); err != nil {
		return err
	}
	h.secret = next.Envd.Control
	h.become <- next
	h.become = nil
	return nil
}
