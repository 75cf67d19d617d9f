package translate

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/store"
)

// Bounds of network rules (control plane facts, 3.8); that of lists is our own.
const (
	maxListed      = 256
	maxRuleHosts   = 10
	maxRuleHeaders = 20
	maxHeaderName  = 64
	maxHeaderValue = 2048
	maxHostName    = 128
)

// anyName allows every host that a connection names, and no address without a name.
const anyName = "*"

var (
	// hostNames are names, and patterns such as *.example.com.
	hostNames   = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	headerNames = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// networkOf returns what the client asked of the network; the table of fields has refused what nobody can do.
func networkOf(body openapi.NewSandbox, secure bool) (store.Network, []adapters.HeaderRule, error) {
	network := store.Network{AllowInternetAccess: body.AllowInternetAccess}
	if body.Network == nil {
		return network, nil, nil
	}
	network.AllowPublicTraffic = body.Network.AllowPublicTraffic
	if mask := body.Network.MaskRequestHost; mask != nil && *mask != "" {
		if !isHostMask(*mask) {
			return store.Network{}, nil, invalid("network.maskRequestHost must be a host name, with a port if need be; ${PORT} in it stands for the port")
		}
		network.MaskRequestHost = *mask
	}
	if !network.PublicTraffic() && !secure {
		return store.Network{}, nil, invalid("network.allowPublicTraffic: false needs a secure sandbox: set secure: true, or use POST /v2/sandboxes")
	}
	rules, err := egress(&network, body.Network.AllowOut, body.Network.DenyOut, body.Network.Rules)
	return network, rules, err
}

// NetworkUpdate turns the new rules of a running sandbox into ours. What is left out is cleared.
func NetworkUpdate(body openapi.SandboxNetworkUpdateConfig) (store.Network, []adapters.HeaderRule, error) {
	switch {
	case len(body.DNSServers) > 0:
		return store.Network{}, nil, refusal("dnsServers", 0, "leave it out, the sandbox then uses the machine's name servers")
	case body.EgressProxy != nil:
		return store.Network{}, nil, refusal("egressProxy", http.StatusForbidden, "set a proxy inside the sandbox")
	}
	network := store.Network{AllowInternetAccess: body.AllowInternetAccess}
	rules, err := egress(&network, body.AllowOut, body.DenyOut, body.Rules)
	return network, rules, err
}

// egress checks the lists and the rules and puts them in.
func egress(into *store.Network, allow, deny []string, rules openapi.SandboxNetworkRules) ([]adapters.HeaderRule, error) {
	if len(allow) > maxListed || len(deny) > maxListed {
		return nil, invalid("network.allowOut and network.denyOut have at most %d entries", maxListed)
	}
	for _, entry := range deny {
		if !store.IsAddress(entry) {
			return nil, invalid("network.denyOut takes addresses and CIDRs, which %q is not", entry)
		}
	}
	into.DenyOut = append([]string(nil), deny...)
	for _, entry := range allow {
		name := strings.ToLower(entry)
		switch {
		case store.IsAddress(entry):
			name = entry
		case name != anyName && (len(name) > maxHostName || !hostNames.MatchString(name)):
			return nil, invalid("network.allowOut takes addresses, CIDRs, names, patterns such as *.example.com, and *, which %q is not", entry)
		case into.Internet():
			return nil, invalid(`network.allowOut names %s, which says something only beside network.denyOut ["0.0.0.0/0"]: add that`, name)
		}
		into.AllowOut = append(into.AllowOut, name)
	}
	return headerRules(into, rules)
}

// headerRules checks the rules and notes for which hosts they are.
func headerRules(into *store.Network, rules openapi.SandboxNetworkRules) ([]adapters.HeaderRule, error) {
	if len(rules) > maxRuleHosts {
		return nil, invalid("network.rules has at most %d hosts", maxRuleHosts)
	}
	var made []adapters.HeaderRule
	for given, transforms := range rules {
		host := strings.ToLower(given)
		if len(host) > maxHostName || !hostNames.MatchString(host) {
			return nil, invalid("network.rules takes names of hosts, which %q is not", given)
		}
		if len(transforms) != 1 {
			return nil, invalid("network.rules has one transform for each host, and %d for %s", len(transforms), host)
		}
		if transforms[0].Transform == nil || len(transforms[0].Transform.Headers) == 0 {
			continue
		}
		headers := transforms[0].Transform.Headers
		if err := checkHeaders(host, headers); err != nil {
			return nil, err
		}
		made, into.RuleHosts = append(made, adapters.HeaderRule{Host: host, Headers: headers}), append(into.RuleHosts, host)
	}
	slices.Sort(into.RuleHosts)
	slices.SortFunc(made, func(a, b adapters.HeaderRule) int { return strings.Compare(a.Host, b.Host) })
	return made, nil
}

// checkHeaders never says a value: it is a secret.
func checkHeaders(host string, headers map[string]string) error {
	if len(headers) > maxRuleHeaders {
		return invalid("network.rules of %s has at most %d headers", host, maxRuleHeaders)
	}
	for name, value := range headers {
		switch {
		case len(name) > maxHeaderName || !headerNames.MatchString(name):
			return invalid("network.rules of %s: %q is no name of a header", host, name)
		case len(value) > maxHeaderValue || strings.ContainsAny(value, "\r\n\x00"):
			return invalid("network.rules of %s: the value of %s is too long, or has a line break in it", host, name)
		case strings.Contains(value, "${e2b."):
			return refusal("network.rules of "+host+" with a placeholder", 0, "write the value itself")
		}
	}
	return nil
}
