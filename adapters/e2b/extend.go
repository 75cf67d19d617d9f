package e2b

import (
	"context"
	"net/http"
	"time"
)

// Extend moves the time at which the server ends the box.
func (p *Provider) Extend(ctx context.Context, boxID string, deadline time.Time) error {
	inner, err := p.innerOf(ctx, boxID)
	if err != nil {
		return err
	}
	_, err = p.api.send(ctx, request{
		method: http.MethodPost, path: "/sandboxes/" + inner + "/timeout", body: map[string]int32{"timeout": p.seconds(deadline)},
	})
	return p.lost(boxID, err)
}
