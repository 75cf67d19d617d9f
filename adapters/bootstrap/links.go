package bootstrap

import (
	"context"
	"net"
	"net/url"
	"sync"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd/stdio"
)

// links are the open streams into boxes without an address, one for each box that is in use. A stream that
// broke is opened anew by the next connection: envd does not depend on it.
type links struct {
	open func(ctx context.Context, boxID string) (*stdio.Link, error)

	mu     sync.Mutex
	all    map[string]*boxLink
	closed bool
}

// boxLink is the stream into one box.
type boxLink struct {
	// opening is held while a stream is opened, so that there is one.
	opening chan struct{}
	link    *stdio.Link
}

func newLinks(open func(ctx context.Context, boxID string) (*stdio.Link, error)) *links {
	return &links{open: open, all: map[string]*boxLink{}}
}

// openLink starts the program that joins us to envd in a box.
func (p *Provider) openLink(ctx context.Context, boxID string) (*stdio.Link, error) {
	program, err := p.Exec(ctx, boxID, []string{p.config.Path, "stdio", "--to", p.config.Socket})
	if err != nil {
		return nil, err
	}
	return stdio.Open(ctx, program)
}

// endpoint is the way into a box.
func (l *links) endpoint(boxID string) adapters.Endpoint {
	return adapters.Endpoint{
		URL:  &url.URL{Scheme: "http", Host: boxID},
		Dial: func(ctx context.Context) (net.Conn, error) { return l.dial(ctx, boxID) },
	}
}

func (l *links) dial(ctx context.Context, boxID string) (net.Conn, error) {
	link, err := l.of(ctx, boxID)
	if err != nil {
		return nil, err
	}
	return link.Dial(ctx)
}

// of returns the stream into a box, opening it when there is none that lives.
func (l *links) of(ctx context.Context, boxID string) (*stdio.Link, error) {
	one, err := l.entry(boxID)
	if err != nil {
		return nil, err
	}
	select {
	case one.opening <- struct{}{}:
		defer func() { <-one.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if one.link != nil && one.link.Alive() {
		return one.link, nil
	}
	fresh, err := l.open(ctx, boxID)
	if err != nil {
		l.forget(boxID, one)
		return nil, err
	}
	if one.link != nil {
		_ = one.link.Close()
	}
	one.link = fresh
	if !l.holds(boxID, one) { // the box was destroyed meanwhile
		_ = fresh.Close()
		return nil, stdio.ErrClosed
	}
	return fresh, nil
}

func (l *links) entry(boxID string) (*boxLink, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, stdio.ErrClosed
	}
	one := l.all[boxID]
	if one == nil {
		one = &boxLink{opening: make(chan struct{}, 1)}
		l.all[boxID] = one
	}
	return one, nil
}

func (l *links) holds(boxID string, one *boxLink) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.all[boxID] == one
}

// forget takes an entry away of which no stream came, so that boxes that are gone leave none.
func (l *links) forget(boxID string, one *boxLink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[boxID] == one && one.link == nil {
		delete(l.all, boxID)
	}
}

// drop ends the stream into a box.
func (l *links) drop(boxID string) {
	l.mu.Lock()
	one := l.all[boxID]
	delete(l.all, boxID)
	l.mu.Unlock()
	if one != nil {
		one.end()
	}
}

// close ends all streams; none is opened any more.
func (l *links) close() {
	l.mu.Lock()
	all := l.all
	l.all, l.closed = map[string]*boxLink{}, true
	l.mu.Unlock()
	for _, one := range all {
		one.end()
	}
}

// end closes the stream once it is not being opened any more: holds then says no.
func (b *boxLink) end() {
	b.opening <- struct{}{}
	defer func() { <-b.opening }()
	if b.link != nil {
		_ = b.link.Close()
	}
}
