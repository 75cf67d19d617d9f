package adapters

import (
	"maps"
	"slices"
)

// Feature names one fact about a provider. The set is closed: what is not here cannot be required.
type Feature string

// The features. Those without a level of their own have the value Yes or No.
const (
	FeatureExec        Feature = "exec"         // runs programs
	FeatureFiles       Feature = "files"        // reads and writes files
	FeaturePTY         Feature = "pty"          // terminals
	FeatureStdin       Feature = "stdin"        // input of running programs
	FeatureWatch       Feature = "watch"        // changes of folders as they happen
	FeaturePorts       Feature = "ports"        // any TCP port of a box is reachable through the gateway
	FeatureIsolation   Feature = "isolation"    // process, container, gvisor, vm, microvm or unknown
	FeatureInternetOff Feature = "internet_off" // the network can really be taken away
	FeatureEgressLists Feature = "egress_lists" // addresses or names that may or may not be reached
	FeatureDeadline    Feature = "deadline"     // a box ends by itself at Spec.Envd.Deadline
	FeatureExtend      Feature = "extend"       // and that deadline can be moved
	FeatureMetrics     Feature = "metrics"      // what a box uses can be told
	FeatureLogs        Feature = "logs"         // what its processes did is noted
	FeatureEndSeen     Feature = "end_seen"     // the end of a box is told at once
	FeatureStock       Feature = "stock"        // boxes can be made ahead
	FeatureUniqueNames Feature = "unique_names" // the provider itself refuses a second box of one name
	FeaturePause       Feature = "pause"        // none, filesystem or memory
	FeatureSnapshot    Feature = "snapshot"     // none, filesystem or memory
	FeatureGPU         Feature = "gpu"          // the kinds of it, separated by commas
	FeatureRegions     Feature = "regions"      // where boxes may be placed, separated by commas
	FeatureImages      Feature = "images"       // boxes from any OCI image
	FeatureMaxLife     Feature = "max_life"     // the longest life of a box, as Go writes durations

	// Details of files and of egress_lists. Where a detail is stated it decides, else the whole does.
	FeatureFileRead     Feature = "file_read"
	FeatureFileWrite    Feature = "file_write"
	FeatureFileList     Feature = "file_list"
	FeatureFileDelete   Feature = "file_delete"
	FeatureFileAppend   Feature = "file_append"
	FeatureFileParents  Feature = "file_parents"  // missing folders above a file are made
	FeatureAllowCIDRs   Feature = "allow_cidrs"   // nothing but these addresses can be reached
	FeatureDenyCIDRs    Feature = "deny_cidrs"    // these addresses cannot be reached
	FeatureAllowDomains Feature = "allow_domains" // nothing but these names can be reached

	// What few places can.
	FeatureOrderedOutput   Feature = "ordered_output"   // the output of a stream arrives in its order
	FeatureConfirmedCancel Feature = "confirmed_cancel" // after a kill was answered, the process is gone
	FeatureInjectHeaders   Feature = "inject_headers"   // headers are added to outgoing requests; https: over TLS alone
	FeatureEgressProxy     Feature = "egress_proxy"     // outgoing connections go through a named proxy
	FeatureLiveNetwork     Feature = "live_network"     // network rules change while the box runs
	FeatureDirectPorts     Feature = "direct_ports"     // a port has an address at the provider itself
	FeatureLeasedPorts     Feature = "leased_ports"     // such an address ends after a time
	FeatureDirectEnvd      Feature = "direct_envd"      // clients may reach envd past the facade
	FeatureFork            Feature = "fork"
	FeatureVolumes         Feature = "volumes"

	// What every place does. Nobody states it and nothing requires it: only a Drift names it.
	FeatureCreate    Feature = "create"    // boxes are made
	FeatureFind      Feature = "find"      // boxes are looked up and listed
	FeatureDestroy   Feature = "destroy"   // boxes are removed
	FeatureTemplates Feature = "templates" // templates are found
)

// Values of features without a level, and of the levels the lowest.
const (
	Yes  = "yes"
	No   = "no"
	None = "none"
)

// Evidence says how a fact is known.
type Evidence string

// The kinds of evidence. Only what was seen to be so is verified; a page of the provider never is.
const (
	Declared Evidence = "declared"
	Verified Evidence = "verified"
)

// Capability is one fact about a provider, as data.
type Capability struct {
	Feature Feature `json:"feature"`
	Value   string  `json:"value"`
	// Source is where the fact is from: an address of a page, "probe", "envd", "configuration".
	Source string `json:"source"`
	// Date is the day on which the source said so, YYYY-MM-DD; empty for what was found at this start.
	Date     string   `json:"date,omitempty"`
	Evidence Evidence `json:"evidence"`
}

// Present reports whether the capability is there at all: a value other than no, none, unknown or nothing.
func (c Capability) Present() bool {
	switch c.Value {
	case "", No, None, "unknown":
		return false
	}
	return true
}

// Capabilities are the facts about one provider, by feature.
type Capabilities map[Feature]Capability

// Has reports whether a feature is there. A fact that nobody states is not there.
func (c Capabilities) Has(feature Feature) bool { return c[feature].Present() }

// Value returns a feature's value; empty when nobody states it.
func (c Capabilities) Value(feature Feature) string { return c[feature].Value }

// List returns the facts in the order of their names.
func (c Capabilities) List() []Capability {
	list := make([]Capability, 0, len(c))
	for _, feature := range slices.Sorted(maps.Keys(c)) {
		list = append(list, c[feature])
	}
	return list
}

// byEnvd are the features that our envd gives wherever it runs.
func byEnvd() []Feature {
	return []Feature{FeatureExec, FeatureFiles, FeaturePTY, FeatureStdin, FeatureWatch, FeaturePorts, FeatureDeadline,
		FeatureOrderedOutput, FeatureConfirmedCancel}
}

// CapabilitiesOf resolves what a provider can do, once at the start: what our envd gives, what follows from
// its description and its powers, and above these what the adapter itself states.
func CapabilitiesOf(p Provider) Capabilities {
	description, powers := p.Describe(), PowersOf(p)
	all := Capabilities{}
	note := func(feature Feature, value, source string, evidence Evidence) {
		all[feature] = Capability{Feature: feature, Value: value, Source: source, Evidence: evidence}
	}
	if powers.Native == nil {
		for _, feature := range byEnvd() {
			note(feature, Yes, "envd", Verified)
		}
	}
	note(FeatureIsolation, description.Isolation, "description", Declared)
	note(FeatureInternetOff, yesNo(description.InternetOff), "description", Declared)
	for feature, there := range map[Feature]bool{
		FeatureExtend: powers.Extender != nil, FeatureMetrics: powers.Meter != nil, FeatureLogs: powers.Journal != nil,
		FeatureEndSeen: powers.Watcher != nil, FeatureStock: powers.Stocker != nil,
	} {
		note(feature, yesNo(there), "adapter", Verified)
	}
	for _, stated := range description.Capabilities {
		all[stated.Feature] = stated
	}
	return all
}

func yesNo(b bool) string {
	if b {
		return Yes
	}
	return No
}
