package bootstrap

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// Shelf is a place where boxes can be made ahead whose envd waits for its configuration (Config.Waits).
type Shelf interface {
	// Stock makes one box ahead; it returns when envd was started in it.
	Stock(ctx context.Context, spec adapters.Spec) (adapters.Box, error)
	// Take makes a stocked box that fits the box spec.BoxID by one conditional step, and returns the id under
	// which it was made. KindNotFound when none fits.
	Take(ctx context.Context, spec adapters.Spec) (box adapters.Box, born string, err error)
	// Unstock is as that of adapters.Stocker.
	Unstock(ctx context.Context, boxID string) error
}

// configure tells an envd that waits what it is to be, with the secrets of the id under which the box was made, and
// returns when it answers as that. When an answer was lost, the next call shows whether it was taken over.
func (p *Provider) configure(ctx context.Context, spec adapters.Spec, born string) error {
	spec.Envd.DiskBytes = int64(spec.Resources.DiskMB) << 20 // a container's file system is a share of a larger one
	told := false
	return p.until(ctx, func(ctx context.Context) error {
		if !told {
			err := p.callAs(ctx, spec.BoxID, born, http.MethodPut, envd.RouteConfigure, spec.Envd, nil)
			told = err == nil
			if err != nil && p.health(ctx, spec.BoxID) != nil {
				return err
			}
		}
		return p.health(ctx, spec.BoxID)
	})
}

// stocker is a shelf's boxes with envd in them.
type stocker struct {
	*Provider
	place Shelf
}

// Stock makes a box ahead and returns when its envd waits: the first thing that it is told is its end.
func (s stocker) Stock(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	if spec.Envd.Deadline.IsZero() {
		return adapters.Box{}, adapters.Errorf(adapters.KindInvalid, "a box that is made ahead needs a deadline")
	}
	box, err := s.place.Stock(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	body := struct {
		Deadline time.Time `json:"deadline"`
	}{spec.Envd.Deadline}
	err = s.until(ctx, func(ctx context.Context) error {
		return s.call(ctx, spec.BoxID, http.MethodPut, envd.RouteDeadline, body, nil)
	})
	if err != nil {
		return adapters.Box{}, s.undo(ctx, spec.BoxID, err)
	}
	return box, nil
}

// Claim takes a box and configures its envd. One that does not take its configuration is removed.
func (s stocker) Claim(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	box, born, err := s.place.Take(ctx, spec)
	if err != nil {
		return adapters.Box{}, err
	}
	s.links.drop(born)
	if err := s.configure(ctx, spec, born); err != nil {
		err = s.undo(ctx, spec.BoxID, err)
		if adapters.KindOf(err) == adapters.KindUnknownOutcome || ctx.Err() != nil {
			return adapters.Box{}, err
		}
		return adapters.Box{}, adapters.Wrap(adapters.KindNotFound, err, "the sandbox that was made ahead could not be used")
	}
	return box, nil
}

// Unstock destroys a box that nobody claimed.
func (s stocker) Unstock(ctx context.Context, boxID string) error {
	err := s.place.Unstock(ctx, boxID)
	if err == nil {
		s.links.drop(boxID)
	}
	return err
}
