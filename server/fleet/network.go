package fleet

import (
	"context"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// SetNetwork replaces what a running sandbox of the team may reach. Who may reach its ports stays as it was made.
// KindUnsupported names what its place cannot do; nothing is changed then.
func (f *Fleet) SetNetwork(ctx context.Context, teamID, id string, network store.Network, rules []adapters.HeaderRule) error {
	sb, err := f.owned(ctx, teamID, id)
	if err != nil {
		return err
	}
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return err
	}
	if err := p.changes(network, sb.Network); err != nil {
		return err
	}
	_, err = f.alone(ctx, id, func(ctx context.Context) (store.Sandbox, error) {
		return f.changeNetwork(ctx, p, id, network, rules)
	})
	return err
}

// changes says whether the pool can have a running sandbox follow such rules.
func (p *pool) changes(network, before store.Network) error {
	capabilities := p.terms.Load().facts.Capabilities
	if p.networker == nil || !capabilities.Has(adapters.FeatureLiveNetwork) {
		return unsupported("updateSandboxNetwork is not supported here: pool %s cannot change the network of a running sandbox. "+
			"Say what it may reach when it is created, or create it with the requirement network=live_network", p.name)
	}
	if lacks := placement.LacksForNetwork(network, before, capabilities); len(lacks) > 0 {
		return unsupported("network is not supported here as it is given: pool %s lacks %s", p.name, strings.Join(lacks, ", "))
	}
	return nil
}

// changeNetwork writes the intent, has the place follow it, and takes it back where the place refuses.
func (f *Fleet) changeNetwork(ctx context.Context, p *pool, id string, network store.Network, rules []adapters.HeaderRule) (store.Sandbox, error) {
	var before store.Sandbox
	_, err := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
		if record.State == store.StatePaused {
			return asleep(*record)
		}
		if err := whenAwake(*record); err != nil {
			return err
		}
		before = *record
		t, err := f.unsealed(record.TeamID, record.Sealed)
		if err != nil {
			return err
		}
		t.Rules = rules
		network.AllowPublicTraffic, network.MaskRequestHost = record.Network.AllowPublicTraffic, record.Network.MaskRequestHost
		record.Network, record.NetworkPending, record.Sealed = network, true, f.sealed(record.TeamID, p, t)
		return nil
	})
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	changed, err := f.applyNetwork(ctx, id)
	if err == nil || !leavesNothing(err) || adapters.KindOf(err) == adapters.KindUnavailable {
		return changed, err // an outcome that is not known is followed up by Reconcile
	}
	_, back := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
		record.Network, record.NetworkPending, record.Sealed = before.Network, before.NetworkPending, before.Sealed
		return nil
	})
	if back != nil {
		f.log.Error("a refused change of the network could not be taken back", "sandbox", id, "err", back)
	}
	return store.Sandbox{}, err
}

// applyNetwork has the place follow the record.
func (f *Fleet) applyNetwork(ctx context.Context, id string) (store.Sandbox, error) {
	sb, err := f.store.Sandboxes.Get(ctx, id)
	if err != nil {
		return store.Sandbox{}, storeError(id, err)
	}
	if sb.State != store.StateRunning || !sb.NetworkPending {
		return sb, nil
	}
	p, err := f.poolOf(sb.Pool)
	if err != nil {
		return store.Sandbox{}, err
	}
	t, err := f.unsealed(sb.TeamID, sb.Sealed)
	if err == nil {
		err = p.setNetwork(ctx, sb.BoxID, networkOf(sb.Network, t.Rules))
	}
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		return store.Sandbox{}, f.lost(id, err)
	}
	if err != nil {
		f.log.Warn("the network of a sandbox was not changed", "sandbox", id, "pool", p.name, "err", err)
		return store.Sandbox{}, err
	}
	changed, err := f.store.Sandboxes.Change(ctx, id, func(record *store.Sandbox) error {
		record.NetworkPending = false
		return nil
	})
	return changed, storeError(id, err)
}
