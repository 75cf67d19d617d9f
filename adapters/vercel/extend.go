package vercel

import (
	"context"
	"net/http"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Extend moves the end of a box. The vendor's limit is moved later when it must be, up to what the plan allows; an
// earlier end is ours to keep.
func (p *place) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	v, err := p.living(ctx, boxID)
	if err != nil {
		return err
	}
	k := p.remember(boxID, v)
	if more := p.more(v.Session, deadline); more >= minLife {
		var answer struct {
			Session session `json:"session"`
		}
		err := p.api.send(ctx, request{
			method: http.MethodPost, path: "/v2/sandboxes/sessions/" + k.session + "/extend-timeout",
			body: map[string]int64{"duration": more.Milliseconds()}, into: &answer,
		})
		if coded(err, codeTimeout) {
			return adapters.Wrap(adapters.KindUnsupported, err, "a Vercel sandbox of the plan "+p.plan.Name+" lives at most "+p.plan.MaxLife.String())
		}
		if err != nil {
			return err
		}
		if answer.Session.end().IsZero() {
			return vendor.Unread(adapters.KindUnavailable, nil, "it does not say when the session ends")
		}
	}
	p.deadlines.set(boxID, deadline)
	return nil
}

// more is by how much the vendor's limit must be moved.
func (p *place) more(s session, deadline time.Time) time.Duration {
	end := s.end()
	if end.IsZero() {
		return 0
	}
	life := time.Duration(s.Timeout) * time.Millisecond
	begin := end.Add(-life)
	if deadline.IsZero() {
		return p.plan.MaxLife - life
	}
	wanted := min(deadline.Add(slack).Sub(begin), p.plan.MaxLife)
	return wanted - life
}
