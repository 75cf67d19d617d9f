package config

// ProviderDaytona is a pool of Daytona, or of a server of its API v0.
const ProviderDaytona = "daytona"

// Daytona is the account of a pool of that provider. Its API key is the pool's credential; api_url is left out but for
// another server. Templates name snapshots of the organization, or images as "image:python:3.12". The pool's isolation
// is container, or vm where its snapshots are virtual machines.
type Daytona struct {
	// Target is the region, in the vendor's words; empty: the organization's own.
	Target string `yaml:"target"`
	// NoBake uploads envd at every create instead of keeping snapshots with it in the account.
	NoBake bool `yaml:"no_bake"`
}

// check looks at what a daytona pool has, and that no other pool has it.
func (d Daytona) check(path string, p Pool) Faults {
	switch {
	case p.Provider != ProviderDaytona && d != (Daytona{}):
		return Faults{{path + ".daytona", "is for pools of provider daytona"}}
	case p.Provider == ProviderDaytona && p.Isolation != "" && p.Isolation != "container" && p.Isolation != "vm":
		return Faults{{path + ".isolation", "of a daytona pool is container or vm, not \"" + p.Isolation + "\""}}
	}
	return nil
}
