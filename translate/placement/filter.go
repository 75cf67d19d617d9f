package placement

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// Kinds of templates: portable ones run everywhere, images only where the pool takes them, native ones only
// in the pool that owns them.
const (
	SourcePortable = "portable"
	SourceOCI      = "oci"
	SourceNative   = "native"
)

// Needed are the requirements of a request as the filter holds them against pools: its own, and what follows
// from the other fields of the create. The portable baseline is added unless it is switched off.
func Needed(req Request) Requirements {
	r := req.Require
	r.Lifetime = max(r.Lifetime, req.Timeout)
	for _, power := range networkNeeds(req.Network) {
		if !contains(r.Network, power) {
			r.Network = append(slices.Clone(r.Network), power)
		}
	}
	if level := pauseNeed(req); slices.Index(levels(), level) > slices.Index(levels(), r.Pause) {
		r.Pause = level
	}
	r.Features = withBaseline(r)
	return r
}

// pauseNeed is the least that a place must keep of a paused sandbox, for what the create says of its timeout. Only a
// sandbox with its memory can be woken by traffic: whatever listened in one without is gone.
func pauseNeed(req Request) string {
	switch {
	case req.AutoResume:
		return string(adapters.LevelMemory)
	case req.AutoPause && req.AutoPauseLevel == "":
		return string(adapters.LevelFilesystem)
	case req.AutoPause:
		return string(req.AutoPauseLevel)
	}
	return ""
}

// withBaseline adds the portable baseline. Who names a destination and one of the three is taken at the word:
// the others are then not added.
func withBaseline(r Requirements) map[string]Flag {
	features := map[string]Flag{}
	asked := false
	for key, state := range r.Features {
		features[key] = state
		asked = asked || state == FlagOn && contains(baseline(), key)
	}
	if pinned := r.Provider != "" || len(r.Pools) > 0; pinned && asked {
		return features
	}
	for _, key := range baseline() {
		if features[key] == FlagUnset {
			features[key] = FlagOn
		}
	}
	return features
}

// fieldsOf names the fields of a create from which requirements follow, so that a refusal can speak of what was sent.
func fieldsOf(req Request) map[string]string {
	fields := map[string]string{}
	follows := func(set bool, field string, requirements ...string) {
		for _, requirement := range requirements {
			if set {
				fields[requirement] = field
			}
		}
	}
	network := func(power adapters.Feature) string { return "network." + string(power) }
	follows(req.AutoPause, "autoPause", "pause")
	follows(req.AutoResume, "autoResume", "pause")
	follows(len(req.Network.AllowOut) > 0, "network.allowOut", network(adapters.FeatureAllowCIDRs), network(adapters.FeatureAllowDomains))
	follows(len(req.Network.DenyOut) > 0, "network.denyOut", network(adapters.FeatureDenyCIDRs))
	follows(len(req.Network.RuleHosts) > 0, "network.rules", network(adapters.FeatureInjectHeaders))
	return fields
}

// injectHTTPS is inject_headers of a place that adds headers to HTTPS requests alone. Which requests a program will make
// is not known, so such a place meets header rules only where somebody has said that HTTPS is enough.
const injectHTTPS = "inject_headers_https"

// networkPowers are what a place may be able to do to the network.
func networkPowers() []string {
	return []string{
		string(adapters.FeatureInternetOff), string(adapters.FeatureAllowCIDRs), string(adapters.FeatureDenyCIDRs),
		string(adapters.FeatureAllowDomains), string(adapters.FeatureInjectHeaders), injectHTTPS, string(adapters.FeatureEgressProxy),
		string(adapters.FeatureLiveNetwork),
	}
}

// networkNeeds are the powers that network fields need. Every field of store.Network that restricts anything must be
// here (TestEveryNetworkFieldIsKnown), so that nothing is ever left open.
func networkNeeds(n store.Network) []string {
	needed := map[adapters.Feature]bool{
		adapters.FeatureInternetOff:   !n.Internet(),
		adapters.FeatureInjectHeaders: len(n.RuleHosts) > 0,
	}
	for _, denied := range n.DenyOut {
		if denied != store.AllTraffic {
			needed[adapters.FeatureDenyCIDRs] = true
		}
	}
	for _, allowed := range n.AllowOut {
		if store.IsAddress(allowed) {
			needed[adapters.FeatureAllowCIDRs] = true
		} else {
			needed[adapters.FeatureAllowDomains] = true
		}
	}
	var needs []string
	for _, power := range networkPowers() {
		if needed[adapters.Feature(power)] {
			needs = append(needs, power)
		}
	}
	return needs
}

// LacksForNetwork names the powers that a pool lacks for new network fields of a running sandbox. What is not stated is
// not there. before are its present ones: where it has header rules in a place that keeps them for HTTPS alone, that was
// said to be enough when it was made.
func LacksForNetwork(n, before store.Network, capabilities adapters.Capabilities) []string {
	return slices.DeleteFunc(networkNeeds(n), func(power string) bool {
		if power == string(adapters.FeatureInjectHeaders) && len(before.RuleHosts) > 0 {
			power = injectHTTPS
		}
		return hasPower(capabilities, power)
	})
}

// filter notes everything that the candidate lacks of a request. asked are the keys that needed states.
func filter(c *candidate, req *Request, needed *Requirements, asked []Key) {
	c.need = needed
	if defaults := c.offer.Pool.Defaults; defaults != nil {
		filled := overlay(*defaults, *needed)
		c.need, asked = &filled, filters(&filled)
	}
	c.fields = fieldsOf(*req)
	checkTemplate(c, req)
	for _, k := range asked {
		k.check(c)
	}
	checkNow(c)
}

// filters are the keys that pools are held against: those that are stated, and those that also choose something.
func filters(r *Requirements) []Key {
	return slices.DeleteFunc(Keys(), func(k Key) bool { return k.check == nil || !k.always && k.text(r) == "" })
}

func checkProvider(c *candidate) {
	destination := append([]string{c.need.Provider}, c.need.Fallback...)
	if pool := &c.offer.Pool; !contains(destination, pool.Name) && !contains(destination, pool.Provider) {
		c.lack("provider", strings.Join(destination, ","), pool.Provider)
	}
}

func checkPools(c *candidate) {
	if !contains(c.need.Pools, c.offer.Pool.Name) {
		c.lack("pools", strings.Join(c.need.Pools, ","), c.offer.Pool.Name)
	}
}

func checkTemplate(c *candidate, req *Request) {
	if c.offer.Template == nil {
		c.lack(UnmetTemplate, req.Template, "")
	}
	if source := req.Source; source != "" && source != SourcePortable && !contains(c.offer.Pool.Sources, source) {
		c.lack(UnmetSource, source, strings.Join(append([]string{SourcePortable}, c.offer.Pool.Sources...), ","))
	}
}

// checkRegion chooses the region. A pool whose region cannot be chosen qualifies only when all of its regions do.
func checkRegion(c *candidate) {
	pool := &c.offer.Pool
	fits := func(r Region) bool {
		return !slices.ContainsFunc(c.need.Regions, func(group []string) bool { return !r.inOneOf(group) })
	}
	var fit []Region
	for _, region := range pool.Regions {
		if fits(region) {
			fit = append(fit, region)
		}
	}
	if len(c.need.Regions) > 0 && (len(fit) == 0 || !pool.RegionChoice && len(fit) < len(pool.Regions)) {
		var names []string
		for _, region := range pool.Regions {
			names = append(names, region.Name)
		}
		key := Key{field: regions(func(r *Requirements) *[][]string { return &r.Regions })}
		c.lack("region", key.text(c.need), cmp.Or(strings.Join(names, ","), "unknown"))
		return
	}
	if !pool.RegionChoice && len(pool.Regions) != 1 || len(fit) == 0 {
		return // nobody can say where it will be
	}
	c.region = fit[0].Name
	if at := slices.IndexFunc(fit, func(r Region) bool { return r.inOneOf(c.need.Near) }); at > 0 {
		c.region = fit[at].Name
	}
}

func checkIsolation(c *candidate) {
	has := c.offer.Pool.Isolation
	if slices.Index(isolations(), has.Level) < slices.Index(isolations(), c.need.Isolation) {
		c.lack("isolation", c.need.Isolation, cmp.Or(has.Level, IsolationUnknown))
	}
}

func checkVerified(c *candidate) {
	if c.need.VerifiedIsolation == FlagOn && !c.offer.Pool.Isolation.Verified {
		c.lack("verified-isolation", "verified", c.offer.Pool.Isolation.Evidence())
	}
}

// checkNetwork names each missing power. What is not stated is not there: it fails closed.
func checkNetwork(c *candidate) {
	for _, power := range c.need.Network {
		if power == string(adapters.FeatureInjectHeaders) && c.httpsIsEnough() {
			power = injectHTTPS
		}
		if !hasPower(c.offer.Pool.Capabilities, power) {
			c.lack("network."+power, "", partOf(c.offer.Pool.Capabilities, power))
		}
	}
}

// httpsIsEnough reports whether the request, or the operator for this pool, has said so of header rules.
func (c *candidate) httpsIsEnough() bool {
	defaults := c.offer.Pool.Defaults
	return contains(c.need.Network, injectHTTPS) || defaults != nil && contains(defaults.Network, injectHTTPS)
}

// partOf says what a pool has of a power that it lacks as a whole; empty: nothing.
func partOf(capabilities adapters.Capabilities, power string) string {
	if power == string(adapters.FeatureInjectHeaders) && capabilities.Has(adapters.FeatureInjectHeaders) {
		return capabilities.Value(adapters.FeatureInjectHeaders) + " only"
	}
	return ""
}

// hasPower reports whether a pool states a power over the network, or the whole that it is a detail of.
func hasPower(capabilities adapters.Capabilities, power string) bool {
	whole := adapters.Feature("")
	switch adapters.Feature(power) {
	case adapters.FeatureInjectHeaders:
		return capabilities.Value(adapters.FeatureInjectHeaders) == adapters.Yes
	case injectHTTPS:
		return capabilities.Has(adapters.FeatureInjectHeaders)
	case adapters.FeatureAllowCIDRs, adapters.FeatureDenyCIDRs, adapters.FeatureAllowDomains:
		whole = adapters.FeatureEgressLists
	}
	return has(capabilities, adapters.Feature(power), whole)
}

// has reports whether a pool states a capability; whole decides where the capability itself is not stated.
func has(capabilities adapters.Capabilities, feature, whole adapters.Feature) bool {
	if _, stated := capabilities[feature]; !stated && whole != "" {
		feature = whole
	}
	return capabilities.Has(feature)
}

func checkLabels(c *candidate) {
	for _, label := range c.need.Labels {
		if !contains(c.offer.Pool.Labels, label) {
			c.lack("labels", label, strings.Join(c.offer.Pool.Labels, ","))
		}
	}
}

func checkLimits(c *candidate) {
	for _, limit := range c.need.Limits {
		if contains(c.offer.Pool.Unenforced, limit) {
			c.lack("limits", limit, "not enforced")
		}
	}
}

func checkLifetime(c *candidate) {
	if most := time.Duration(c.offer.Pool.MaxLife); most > 0 && c.need.Lifetime > most {
		c.lack("lifetime", brief(c.need.Lifetime), brief(most))
	}
}

func checkPause(c *candidate) { checkDepth(c, adapters.FeaturePause, c.need.Pause) }

func checkSnapshot(c *candidate) { checkDepth(c, adapters.FeatureSnapshot, c.need.Snapshot) }

func checkDepth(c *candidate, feature adapters.Feature, wanted string) {
	value := c.offer.Pool.Capabilities.Value(feature)
	if slices.Index(levels(), value) < slices.Index(levels(), wanted) {
		c.lack(string(feature), wanted, cmp.Or(value, adapters.None))
	}
}

func checkSwitch(c *candidate, s featureSwitch) {
	if c.need.Features[s.key] == FlagOn && !has(c.offer.Pool.Capabilities, s.asks, s.whole) {
		c.lack(s.key, "", "")
	}
}

// checkNow notes what keeps a pool from serving at this moment.
func checkNow(c *candidate) {
	pool, live := &c.offer.Pool, &c.offer.Live
	if pool.Draining {
		c.notNow(UnmetDraining, "", "no new sandboxes")
	}
	if live.Unhealthy != "" {
		c.notNow(UnmetHealthy, "", live.Unhealthy)
	}
	if live.Breaker == BreakerOpen {
		c.notNow(UnmetBreaker, "", OpenUntil(live.BreakerUntil))
	}
	if live.RestUntil.After(c.now) {
		c.notNow(UnmetResting, "", string(live.RestKind)+", for "+live.RestUntil.Sub(c.now).Round(time.Second).String())
	}
	if pool.Concurrency > 0 && live.Sandboxes >= pool.Concurrency {
		c.notNow(UnmetConcurrency, "", strconv.Itoa(live.Sandboxes)+" of "+strconv.Itoa(pool.Concurrency))
	}
}
