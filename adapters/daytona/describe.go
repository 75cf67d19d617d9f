package daytona

import (
	"github.com/isthmus/isthmus/adapters"
)

// The sources of what is declared.
const (
	sourceSDK  = "the vendor's SDK 0.218"
	sourceDocs = "https://www.daytona.io/docs"
	checked    = "2026-11-29"
)

// Describe returns what is known of Daytona. Nothing of it was seen on an account.
func (p *Provider) Describe() adapters.Description {
	state := func(feature adapters.Feature, value, source string) adapters.Capability {
		return adapters.Capability{Feature: feature, Value: value, Source: source, Date: checked, Evidence: adapters.Declared}
	}
	isolation, keeps, copies := "container", string(adapters.LevelFilesystem), string(adapters.LevelFilesystem)
	if p.config.Class == ClassVM {
		isolation, keeps, copies = "vm", string(adapters.LevelMemory), adapters.None
	}
	return adapters.Description{
		Provider: "daytona", Isolation: isolation, Tier: "API v0, " + p.config.Class, InternetOff: true, Max: p.config.Max,
		Capabilities: []adapters.Capability{
			state(adapters.FeatureUniqueNames, adapters.Yes, sourceSDK),
			state(adapters.FeaturePause, keeps, sourceSDK),
			state(adapters.FeatureSnapshot, copies, sourceSDK),
			state(adapters.FeatureAllowCIDRs, adapters.Yes, sourceSDK),
			state(adapters.FeatureDenyCIDRs, adapters.No, sourceSDK),
			state(adapters.FeatureAllowDomains, adapters.Yes, sourceSDK),
			state(adapters.FeatureEgressLists, adapters.Yes, sourceSDK),
			state(adapters.FeatureLiveNetwork, adapters.Yes, sourceSDK),
			state(adapters.FeatureInjectHeaders, adapters.No, sourceSDK),
			state(adapters.FeatureDirectPorts, adapters.Yes, sourceDocs),
			state(adapters.FeatureImages, adapters.Yes, sourceDocs),
			state(adapters.FeatureVolumes, adapters.No, "this adapter"),
		},
	}
}
