package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

const (
	// maxEntries bounds one answer of Entries, maxAnswer what is read of any answer.
	maxEntries = 1000
	maxAnswer  = 16 << 20
)

// unreachable is the message for a box that is there but whose envd does not answer.
const unreachable = "the sandbox does not answer at the moment: it is kept, try again"

// Powers are those of the place, and what envd itself can tell.
func (p *Provider) Powers() adapters.Powers {
	found := adapters.Powers{Extender: extender{p}, Journal: journal{p}, Meter: meter{p}, Bootable: p.Bare}
	if p.config.Waits {
		found.Bootable = nil // nothing needs it, and the place may not allow it
	}
	if place, can := p.Bare.(adapters.Meter); can {
		found.Meter = place // it sees more from outside
	}
	found.Watcher, _ = p.Bare.(adapters.Watcher)
	found.Explainer, _ = p.Bare.(adapters.Explainer)
	found.Stocker, _ = p.Bare.(adapters.Stocker)
	if place, can := p.Bare.(Shelf); can && p.config.Waits {
		found.Stocker = stocker{p, place}
	}
	found.Networker, _ = p.Bare.(adapters.Networker)
	if place, can := p.Bare.(adapters.Pauser); can {
		found.Pauser = pauser{p, place}
	}
	if place, can := p.Bare.(adapters.Snapshotter); can && !p.denies(adapters.FeatureSnapshot) {
		found.Snapshotter = snapshotter{p, place}
	}
	return found
}

// denies reports whether the place says that it has no such power, as it is configured.
func (p *Provider) denies(feature adapters.Feature) bool {
	return slices.ContainsFunc(p.Describe().Capabilities, func(c adapters.Capability) bool {
		return c.Feature == feature && !c.Present()
	})
}

// health asks envd whether it answers.
func (p *Provider) health(ctx context.Context, boxID string) error {
	return p.call(ctx, boxID, http.MethodGet, "/health", nil, nil)
}

type extender struct{ *Provider }

// Extend moves the end of the box, where the place can, and that of its envd.
func (p extender) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	if place, can := p.Bare.(adapters.Extender); can {
		if err := place.Extend(ctx, boxID, deadline); err != nil {
			return err
		}
	}
	return p.tell(ctx, boxID, http.MethodPut, envd.RouteDeadline, until(deadline), nil)
}

// until is the body that moves envd's own end; the zero time is none.
func until(deadline time.Time) any {
	return struct {
		Deadline time.Time `json:"deadline"`
	}{deadline}
}

type journal struct{ *Provider }

// Entries returns what envd noted after an entry.
func (p journal) Entries(ctx context.Context, boxID string, after uint64) ([]envd.JournalEntry, error) {
	var entries []envd.JournalEntry
	err := p.tell(ctx, boxID, http.MethodGet, envd.RouteJournal+"?after="+strconv.FormatUint(after, 10), nil, &entries)
	return entries[:min(len(entries), maxEntries)], err
}

type meter struct{ *Provider }

// Measure returns what envd sees of the machine that it is in.
func (p meter) Measure(ctx context.Context, boxID string) (adapters.Sample, error) {
	var u envd.Usage
	err := p.tell(ctx, boxID, http.MethodGet, envd.RouteUsage, nil, &u)
	return adapters.Sample{
		At: u.At, CPUCount: u.CPUCount, CPUTime: u.CPUTime, MemUsed: int64(u.MemUsed), MemTotal: int64(u.MemTotal), MemCache: int64(u.MemCache),
		DiskUsed: int64(u.DiskUsed), DiskTotal: int64(u.DiskTotal),
	}, err
}

// tell is call with the errors of the contract: a box that is gone is told from one that does not answer.
func (p *Provider) tell(ctx context.Context, boxID, method, route string, body, into any) error {
	err := p.call(ctx, boxID, method, route, body, into)
	if err == nil {
		return nil
	}
	box, lookErr := p.Get(ctx, boxID)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case lookErr != nil:
		return lookErr
	case !box.Alive:
		return adapters.Errorf(adapters.KindNotFound, "the sandbox %s has ended", boxID)
	}
	return adapters.Wrap(adapters.KindUnavailable, err, unreachable)
}

// call sends one request of the facade's own to envd in a box.
func (p *Provider) call(ctx context.Context, boxID, method, route string, body, into any) error {
	return p.callAs(ctx, boxID, boxID, method, route, body, into)
}

// callAs is call with the secrets of another id: that under which the box was made.
func (p *Provider) callAs(ctx context.Context, boxID, born, method, route string, body, into any) error {
	endpoint, err := p.Reach(ctx, boxID)
	if err != nil {
		return err
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, endpoint.URL.String()+route, content)
	if err != nil {
		return err
	}
	for name, values := range endpoint.Header {
		request.Header[name] = values
	}
	transport, control := p.config.Secrets(born)
	request.Header.Set(envd.HeaderTransport, transport)
	request.Header.Set(envd.HeaderControl, control)
	response, err := once(endpoint).RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("envd answered %s %s with %s", method, route, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(into)
}

// once is a transport for one request.
func once(endpoint adapters.Endpoint) *http.Transport {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if endpoint.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return endpoint.Dial(ctx) }
	}
	return transport
}
