package kubernetes

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

var _ adapters.Networker = (*Cluster)(nil)

const (
	// obeyTime bounds the wait until a cluster follows a policy, obeyPause is between two looks.
	obeyTime  = 15 * time.Second
	obeyPause = 50 * time.Millisecond
	// leastSettle is the least wait for a change that cannot be seen; else it is as many times what the slowest one
	// took that was seen when the pool was opened.
	leastSettle = 500 * time.Millisecond
	settleTimes = 3
)

// admitNetwork refuses rules that the cluster was not seen to keep.
func (c *Cluster) admitNetwork(n adapters.Network) error {
	const advice = "this pool's cluster is not known to enforce network policies: choose another pool"
	if c.enforces() {
		_, _, err := rules(n)
		return err
	}
	switch {
	case !n.Internet:
		return adapters.Errorf(adapters.KindUnsupported, "the internet cannot be taken away: %s", advice)
	case len(n.AllowOut)+len(n.DenyOut) > 0:
		return adapters.Errorf(adapters.KindUnsupported, "lists of addresses cannot be kept: %s", advice)
	}
	_, _, err := rules(n)
	return err
}

// enforces reports whether the probe has seen policies be kept.
func (c *Cluster) enforces() bool { return c.findings.Policies }

// SetNetwork replaces the policy of a box that runs, and returns when the cluster is seen to follow it, or has had the
// time for it.
func (c *Cluster) SetNetwork(ctx context.Context, boxID string, n adapters.Network) error {
	if err := c.admitNetwork(n); err != nil {
		return err
	}
	pod, err := c.find(ctx, boxID)
	if err != nil {
		return err
	}
	if over(pod) && !marked(pod) {
		return notFound(boxID)
	}
	if err := c.putPolicy(ctx, boxID, n); err != nil {
		return err
	}
	return c.obeyed(ctx, boxID, n)
}

// obeyed returns when the probe's address can be reached from a box, or cannot, as its network has it, and what does not
// show there has had its time. That something cannot be reached which may be is no fault of the policy.
func (c *Cluster) obeyed(ctx context.Context, boxID string, n adapters.Network) error {
	look, done, err := c.looker(ctx, boxID)
	if err != nil {
		return err
	}
	defer done()
	began, wanted := time.Now(), reaches(n, c.config.PolicyProbe.Addr())
	for {
		sees, err := look(ctx)
		late := time.Since(began) > obeyTime
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && sees == wanted:
			return wait(ctx, c.settle-time.Since(began))
		case late && err == nil && wanted:
			c.log.Warn("a sandbox does not reach the address that its network policy allows", "box", boxID, "address", c.config.PolicyProbe)
			return nil
		case late:
			return adapters.Wrap(adapters.KindUnavailable, err, "the cluster has the sandbox's network policy and does not follow it: try again")
		}
		if err := wait(ctx, obeyPause); err != nil {
			return err
		}
	}
}

// looker returns what looks from inside a box whether the probe's address can be reached.
func (c *Cluster) looker(ctx context.Context, boxID string) (look func(context.Context) (bool, error), done func(), _ error) {
	transport, control := c.config.Secrets(boxID)
	spec := adapters.Spec{BoxID: boxID, Envd: envd.Config{Transport: transport, Control: control}}
	open, done, err := c.open(ctx, boxID, c.reach)
	if err != nil {
		return nil, nil, err
	}
	route := envd.RouteReach + "?" + url.Values{"address": {c.config.PolicyProbe.String()}}.Encode()
	return func(ctx context.Context) (bool, error) {
		status, _, err := c.answer(ctx, spec, open, http.MethodGet, route, nil)
		if err == nil && status != http.StatusNoContent && status != http.StatusGatewayTimeout {
			return false, statusError(status)
		}
		return status == http.StatusNoContent, err
	}, done, nil
}

// wait returns after a while, or with the error of a ctx that ends.
func wait(ctx context.Context, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
