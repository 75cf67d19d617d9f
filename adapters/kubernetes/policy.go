package kubernetes

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
)

// fieldManager is who we are towards the API server where we apply objects.
const fieldManager = "isthmus"

// open reports whether a network takes nothing away, so that no policy is needed.
func open(n adapters.Network) bool { return n.Internet && len(n.DenyOut) == 0 }

// rules are the addresses of a network. A name is refused: policies know none.
func rules(n adapters.Network) (allowed, denied []netip.Prefix, err error) {
	if len(n.Rules) > 0 {
		return nil, nil, adapters.Errorf(adapters.KindUnsupported, "headers cannot be added to outgoing requests: choose another pool")
	}
	if allowed, err = prefixes(n.AllowOut); err == nil {
		denied, err = prefixes(n.DenyOut)
	}
	return allowed, denied, err
}

func prefixes(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, adapters.Errorf(adapters.KindUnsupported, "policies of a cluster know addresses and no names: %q cannot be kept, choose another pool", text)
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

// reaches reports whether a network lets an address be reached: what is allowed wins over what is denied.
func reaches(n adapters.Network, address netip.Addr) bool {
	allowed, denied, err := rules(n)
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(address) })
	}
	return err == nil && (in(allowed) || n.Internet && !in(denied))
}

// policy is the NetworkPolicy of a box: its egress rules add up, so that what is allowed wins.
func (c *Cluster) policy(boxID string, n adapters.Network) (*networkingv1.NetworkPolicy, error) {
	allowed, denied, err := rules(n)
	if err != nil {
		return nil, err
	}
	egress := []networkingv1.NetworkPolicyEgressRule{}
	add := func(prefix netip.Prefix, except []string) {
		block := &networkingv1.IPBlock{CIDR: prefix.String(), Except: except}
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: block}}})
	}
	if n.Internet {
		for _, all := range []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} {
			except, everything := within(denied, all)
			if !everything {
				add(all, except)
			}
		}
	}
	for _, prefix := range allowed {
		add(prefix, nil)
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: boxID, Namespace: c.config.Namespace, Labels: map[string]string{labelManaged: managedBy}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelBox: boxID}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: egress,
		},
	}, nil
}

// within are those of one family, as exceptions must be: smaller than all. everything: one of them is all.
func within(list []netip.Prefix, all netip.Prefix) (except []string, everything bool) {
	for _, prefix := range list {
		if prefix.Addr().Is4() != all.Addr().Is4() {
			continue
		}
		everything = everything || prefix.Bits() == 0
		except = append(except, prefix.String())
	}
	return except, everything
}

// putPolicy makes the policy of a box what a network says, in one step.
func (c *Cluster) putPolicy(ctx context.Context, boxID string, n adapters.Network) error {
	if open(n) {
		return c.dropPolicy(ctx, boxID)
	}
	policy, err := c.policy(boxID, n)
	if err != nil {
		return err
	}
	text, err := json.Marshal(policy)
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "a network policy cannot be written")
	}
	force := true
	_, err = c.net.NetworkPolicies(c.config.Namespace).Patch(ctx, boxID, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	return classify(ctx, err, "does not take the sandbox's network policy", true)
}

// dropPolicy removes the policy of a box, where boxes may have one.
func (c *Cluster) dropPolicy(ctx context.Context, boxID string) error {
	if !c.config.PolicyProbe.IsValid() {
		return nil
	}
	err := c.net.NetworkPolicies(c.config.Namespace).Delete(ctx, boxID, metav1.DeleteOptions{})
	if absent(err) {
		return nil
	}
	return classify(ctx, err, "does not remove the sandbox's network policy", false)
}
