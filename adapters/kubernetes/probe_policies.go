package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// probePolicies tries from inside a box that is open whether the cluster keeps policies: nothing, one address, all but
// one address. What it finds is no error: a pool without them refuses rules by name.
func (c *Cluster) probePolicies(ctx context.Context, boxID string) error {
	if !c.config.PolicyProbe.IsValid() {
		return nil
	}
	look, done, err := c.looker(ctx, boxID)
	if err != nil {
		return err
	}
	defer done()
	address := c.config.PolicyProbe.Addr()
	one := netip.PrefixFrom(address, address.BitLen()).String()
	longest := time.Duration(0)
	err = c.follows(ctx, look, true, &longest)
	for _, step := range []adapters.Network{{}, {AllowOut: []string{one}}, {Internet: true, DenyOut: []string{one}}, {Internet: true}} {
		if err == nil {
			if err = c.putPolicy(ctx, boxID, step); err == nil {
				err = c.follows(ctx, look, reaches(step, address), &longest)
			}
		}
	}
	c.findings.Policies, c.settle = err == nil, max(leastSettle, settleTimes*longest)
	if err != nil {
		c.findings.Tried = append(c.findings.Tried, "network policies: "+err.Error())
	}
	return ctx.Err()
}

// policyTime bounds the wait for the cluster to follow one change of the probe.
const policyTime = 6 * time.Second

// follows waits until the address can be reached, or cannot, and notes how long that took.
func (c *Cluster) follows(ctx context.Context, look func(context.Context) (bool, error), wanted bool, longest *time.Duration) error {
	began := time.Now()
	for {
		after := time.Since(began) // a look may take long itself
		sees, err := look(ctx)
		if err == nil && sees == wanted {
			*longest = max(*longest, after)
			return nil
		}
		if time.Since(began) > policyTime {
			text := fmt.Sprintf("a sandbox reaches %s although a policy forbids it: the cluster does not enforce policies", c.config.PolicyProbe)
			if wanted {
				text = fmt.Sprintf("a sandbox does not reach %s although nothing forbids it: name another policy_probe", c.config.PolicyProbe)
			}
			return errors.Join(errors.New(text), err)
		}
		if err := wait(ctx, obeyPause); err != nil {
			return err
		}
	}
}
