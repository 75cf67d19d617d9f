package vercel

import (
	"cmp"

	"github.com/isthmus/isthmus/adapters"
)

// What is read of the vendor's SDKs, and where the rest is from.
const (
	sdkSource = "https://www.npmjs.com/package/@vercel/sandbox/v/3.5.0"
	docSource = "https://vercel.com/docs/vercel-sandbox"
)

// Describe returns the vendor's facts, with the limits of the account's plan.
func (p *place) Describe() adapters.Description {
	state := func(feature adapters.Feature, value, source string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: source, Date: limitsDate, Evidence: adapters.Declared}
	}
	regions := cmp.Or(p.config.Region, "iad1")
	return adapters.Description{
		Provider: "vercel", Isolation: "microvm", Tier: "Firecracker, plan " + p.plan.Name, InternetOff: true, SeenAtOnce: false,
		Max: adapters.Resources{CPU: p.plan.MaxCPU, MemoryMB: p.plan.MaxCPU * memoryPerCPU},
		Capabilities: []adapters.Capability{
			state(adapters.FeatureUniqueNames, adapters.Yes, sdkSource),
			state(adapters.FeatureMaxLife, p.plan.MaxLife.String(), limitsSource),
			state(adapters.FeaturePause, string(adapters.LevelFilesystem), sdkSource),
			state(adapters.FeatureSnapshot, string(adapters.LevelFilesystem), sdkSource),
			state(adapters.FeatureEgressLists, adapters.Yes, sdkSource),
			state(adapters.FeatureAllowCIDRs, adapters.Yes, sdkSource),
			state(adapters.FeatureDenyCIDRs, adapters.Yes, sdkSource),
			state(adapters.FeatureAllowDomains, adapters.Yes, sdkSource),
			state(adapters.FeatureInjectHeaders, adapters.Yes, sdkSource),
			state(adapters.FeatureLiveNetwork, adapters.Yes, sdkSource),
			state(adapters.FeatureDirectPorts, adapters.Yes, sdkSource),
			state(adapters.FeatureRegions, regions, sdkSource),
			state(adapters.FeatureImages, adapters.No, docSource), // its own registry alone
			state(adapters.FeatureGPU, adapters.None, docSource),
			state(adapters.FeatureFork, adapters.No, sdkSource),
		},
	}
}
