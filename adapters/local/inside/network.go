//go:build linux

package inside

import (
	"errors"

	"github.com/isthmus/isthmus/adapters/local/egress/inside"
)

// traffic are the sockets of the box's traffic, or what they can still be made of. It is used by one goroutine.
type traffic struct {
	sockets []int
	later   *inside.Later
	options inside.Options
}

// network brings the box's own network namespace up. Without the internet there is loopback only and no socket to
// hand out, until the facade asks for them: the box has got the internet.
func network(s Setup) (*traffic, error) {
	t := &traffic{options: inside.Options{IPv6: s.IPv6}}
	later, err := inside.Prepare()
	if err != nil {
		return nil, err
	}
	t.later = later
	if !s.Internet {
		return t, nil
	}
	return t, t.open()
}

// open makes the sockets, once, and starts to answer the facade's wishes for further ones.
func (t *traffic) open() error {
	if t == nil || t.later == nil {
		return errors.New("the box has no network")
	}
	if len(t.sockets) > 0 {
		return nil
	}
	made, err := t.later.Open(t.options)
	if err != nil {
		return err
	}
	go func() { _ = made.Respond() }() // for the box's life; without it only UDP is lost
	t.sockets = made.Descriptors()
	return nil
}

// descriptors are the sockets to hand out; none where there is no network to be had.
func (t *traffic) descriptors() []int {
	if t == nil {
		return nil
	}
	return t.sockets
}
