package daytona

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// maxNetworks bounds a list of addresses.
const maxNetworks = 10

// setNetwork replaces what a running sandbox may reach; a list implies that not all is blocked.
func (s *Simulator) setNetwork(r *http.Request, sb *sandbox) (reply, error) {
	var body struct {
		NetworkBlockAll  *bool   `json:"networkBlockAll"`
		NetworkAllowList *string `json:"networkAllowList"`
		DomainAllowList  *string `json:"domainAllowList"`
	}
	if err := read(r, &body); err != nil {
		return reply{}, err
	}
	sb.mu.Lock()
	next := sb.facts
	box := sb.box
	sb.mu.Unlock()
	if body.NetworkBlockAll != nil {
		next.NetworkBlockAll = *body.NetworkBlockAll
	}
	if body.NetworkAllowList != nil {
		next.NetworkAllowList = *body.NetworkAllowList
	}
	if body.DomainAllowList != nil {
		next.DomainAllowList = *body.DomainAllowList
	}
	if err := checkNetworks(next.NetworkAllowList); err != nil {
		return reply{}, err
	}
	if next.State != stateStarted {
		return reply{}, invalid("Sandbox is not started")
	}
	if err := box.SetNetwork(r.Context(), networkOf(next)); err != nil {
		return reply{}, err
	}
	sb.mu.Lock()
	sb.facts.NetworkBlockAll, sb.facts.NetworkAllowList, sb.facts.DomainAllowList = next.NetworkBlockAll, next.NetworkAllowList, next.DomainAllowList
	sb.mu.Unlock()
	return ok(sb.view(r))
}

// checkNetworks refuses what is no list of IPv4 networks.
func checkNetworks(list string) error {
	networks := words(list)
	if len(networks) > maxNetworks {
		return invalid("Network allow list cannot contain more than 10 networks")
	}
	for _, one := range networks {
		if prefix, err := netip.ParsePrefix(one); err != nil || !prefix.Addr().Is4() {
			return invalid("Invalid network: " + one + ". Must be a valid IPv4 CIDR")
		}
	}
	return nil
}

// networkOf is the policy as machines know it. A list is all that may be reached.
func networkOf(f facts) machine.Network {
	allowed := append(words(f.NetworkAllowList), words(f.DomainAllowList)...)
	switch {
	case f.NetworkBlockAll:
		return machine.Network{}
	case len(allowed) > 0:
		return machine.Network{Internet: true, Allow: allowed, Deny: []string{"0.0.0.0/0"}}
	}
	return machine.Network{Internet: true}
}

// words are the entries of a list that is separated by commas.
func words(list string) []string {
	var all []string
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}
