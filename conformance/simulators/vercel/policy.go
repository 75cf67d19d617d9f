//go:build linux

package vercel

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
)

// Policy is what a sandbox may reach, as it is asked for: a mode, or lists. What lists do not name is denied.
type Policy struct {
	Mode    string   `json:"mode,omitempty"`
	Allow   Allowed  `json:"allow,omitempty"`
	Subnets *Subnets `json:"subnets,omitempty"`
}

// Allowed are domains with their rules.
type Allowed map[string][]Rule

// Subnets are addresses. What is denied here wins over all that is allowed.
type Subnets struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Rule changes requests to a domain.
type Rule struct {
	Match     json.RawMessage `json:"match,omitempty"`
	Transform []struct {
		Headers map[string]string `json:"headers"`
	} `json:"transform,omitempty"`
	ForwardURL string          `json:"forwardURL,omitempty"`
	Response   json.RawMessage `json:"response,omitempty"`
}

// PolicyAnswer is a policy as it is answered, in words of an older generation and without the values of headers.
type PolicyAnswer struct {
	Mode           string      `json:"mode"`
	AllowedDomains []string    `json:"allowedDomains,omitempty"`
	AllowedCIDRs   []string    `json:"allowedCIDRs,omitempty"`
	DeniedCIDRs    []string    `json:"deniedCIDRs,omitempty"`
	Injection      []Injection `json:"injectionRules,omitempty"`
}

// Injection says which headers are put into requests.
type Injection struct {
	Domain      string   `json:"domain"`
	HeaderNames []string `json:"headerNames"`
}

// UnmarshalJSON reads a list of domains, or domains with rules.
func (a *Allowed) UnmarshalJSON(text []byte) error {
	var list []string
	if json.Unmarshal(text, &list) == nil {
		*a = Allowed{}
		for _, domain := range list {
			(*a)[domain] = nil
		}
		return nil
	}
	var rules map[string][]Rule
	if err := json.Unmarshal(text, &rules); err != nil {
		return errors.New("allow must be a list of domains, or domains with rules")
	}
	*a = rules
	return nil
}

func (p Policy) check() error {
	switch p.Mode {
	case "", "allow-all", "deny-all":
	default:
		return badRequest("The mode must be allow-all or deny-all.")
	}
	if p.Subnets == nil {
		return nil
	}
	for _, one := range slices.Concat(p.Subnets.Allow, p.Subnets.Deny) {
		if _, err := netip.ParsePrefix(one); err != nil {
			return badRequest("subnets must be CIDRs: " + one + " is none.")
		}
	}
	return nil
}

func (p Policy) custom() bool { return p.Mode == "" && (p.Allow != nil || p.Subnets != nil) }

func (p Policy) domains() []string { return slices.Sorted(maps.Keys(p.Allow)) }

// answer is what the API says of the policy.
func (p Policy) answer() *PolicyAnswer {
	if !p.custom() {
		if p.Mode == "" {
			return &PolicyAnswer{Mode: "allow-all"}
		}
		return &PolicyAnswer{Mode: p.Mode}
	}
	said := &PolicyAnswer{Mode: "custom", AllowedDomains: p.domains()}
	if p.Subnets != nil {
		said.AllowedCIDRs, said.DeniedCIDRs = p.Subnets.Allow, p.Subnets.Deny
	}
	for _, domain := range p.domains() {
		for _, rule := range p.Allow[domain] {
			names := []string{}
			for _, transform := range rule.Transform {
				names = append(names, slices.Sorted(maps.Keys(transform.Headers))...)
			}
			if len(rule.Transform) > 0 {
				said.Injection = append(said.Injection, Injection{Domain: domain, HeaderNames: names})
			}
		}
	}
	return said
}

// network is the policy as boxes of this machine keep it.
func (p Policy) network() machine.Network {
	n := p.reach()
	n.Headers = map[string]map[string]string{}
	for domain := range p.Allow {
		if all := p.headers(domain); len(all) > 0 {
			n.Headers[domain] = all
		}
	}
	return n
}

// headers are what is put into requests to a domain.
func (p Policy) headers(domain string) map[string]string {
	all := map[string]string{}
	for _, rule := range p.Allow[domain] {
		for _, transform := range rule.Transform {
			maps.Copy(all, transform.Headers)
		}
	}
	return all
}

// reach is what may be reached at all.
func (p Policy) reach() machine.Network {
	if !p.custom() {
		return machine.Network{Internet: p.Mode != "deny-all"}
	}
	var n machine.Network
	_, n.Internet = p.Allow["*"]
	for _, domain := range p.domains() {
		if domain != "*" {
			n.Allow = append(n.Allow, domain)
		}
	}
	if n.Internet && (p.Subnets == nil || len(p.Subnets.Deny) == 0) {
		return machine.Network{Internet: true} // all is allowed
	}
	if p.Subnets != nil {
		// Here what is denied wins, in boxes what is allowed.
		for _, one := range adapters.Subtract(prefixes(p.Subnets.Allow), prefixes(p.Subnets.Deny)) {
			n.Allow = append(n.Allow, one.String())
		}
		n.Deny = p.Subnets.Deny
	}
	return n
}

// prefixes are CIDRs that were checked.
func prefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// setPolicy changes what a running session may reach.
func (s *Server) setPolicy(r *http.Request) (any, error) {
	var policy Policy
	if err := read(r, &policy); err != nil {
		return nil, err
	}
	if err := policy.check(); err != nil {
		return nil, err
	}
	one, err := s.running(r)
	if err != nil {
		return nil, err
	}
	if err := one.box.SetNetwork(context.WithoutCancel(r.Context()), policy.network()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.sandbox.policy = policy
	one.info.NetworkPolicy, one.sandbox.info.NetworkPolicy = policy.answer(), policy.answer()
	return map[string]any{"session": one.info}, nil
}

// Injected returns the headers that a sandbox's policy puts into requests to a domain, for tests.
func (s *Server) Injected(name, domain string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sandboxes[name]
	if b == nil {
		return nil
	}
	return b.policy.headers(domain)
}
