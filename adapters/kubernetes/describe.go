package kubernetes

import (
	"github.com/isthmus/isthmus/adapters"
)

// Describe says what this pool was found to be.
func (c *Cluster) Describe() adapters.Description {
	tier := "pods reached by " + string(c.reach) + ", envd by " + string(c.delivery)
	if c.config.AgentSandbox {
		tier += ", claimed of agent-sandbox " + agentVersion
	}
	if c.config.RuntimeClass != "" {
		tier += ", runtime class " + c.config.RuntimeClass
	}
	state := func(feature adapters.Feature, value string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: "configuration", Evidence: adapters.Declared}
	}
	seen := func(feature adapters.Feature, value string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: "probe", Evidence: adapters.Verified}
	}
	facts := []adapters.Capability{
		seen(adapters.FeatureUniqueNames, adapters.Yes),
		state(adapters.FeatureMaxLife, c.config.MaxLife.String()),
	}
	if c.config.AnyImage {
		facts = append(facts, state(adapters.FeatureImages, adapters.Yes))
	}
	if c.config.Region != "" {
		facts = append(facts, state(adapters.FeatureRegions, c.config.Region))
	}
	if c.keeps() { // a pod with a volume was seen to start
		facts = append(facts, seen(adapters.FeaturePause, string(adapters.LevelFilesystem)))
	}
	if c.enforces() {
		for _, feature := range []adapters.Feature{
			adapters.FeatureInternetOff, adapters.FeatureEgressLists, adapters.FeatureAllowCIDRs, adapters.FeatureDenyCIDRs, adapters.FeatureLiveNetwork,
		} {
			facts = append(facts, seen(feature, adapters.Yes))
		}
		facts = append(facts, seen(adapters.FeatureAllowDomains, adapters.No))
	}
	if c.findings.IsolationSeen {
		facts = append(facts, seen(adapters.FeatureIsolation, c.config.Isolation))
	}
	return adapters.Description{
		Provider: "kubernetes", Isolation: c.config.Isolation, Tier: tier, InternetOff: c.enforces(),
		Unenforced: []string{"pids"}, Max: c.config.Max, Capabilities: facts,
	}
}
