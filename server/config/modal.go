package config

import (
	"fmt"
	"os"
	"slices"
)

// ProviderModal is a pool of Modal's sandboxes.
const ProviderModal = "modal"

// Modal is how a pool of that provider uses its account. The pool's credential is TOKEN_ID:TOKEN_SECRET; api_url is left
// out but for a simulated cloud, and templates name images: a reference in a public registry, or an id like im-….
type Modal struct {
	// App is the app that sandboxes are in; empty: isthmus. Environment is that of the app; empty: the account's own.
	App         string `yaml:"app"`
	Environment string `yaml:"environment"`
	// Regions are where sandboxes may be, in Modal's words; none: wherever there is room.
	Regions []string `yaml:"regions"`
	// GPUs are the kinds that may be asked for; none: those that Modal has.
	GPUs []string `yaml:"gpus"`
	// NoBake uploads envd at every create instead of keeping an image with it in the account.
	NoBake bool `yaml:"no_bake"`
	// Authority is a file with certificates, in PEM, by which tunnels are trusted; empty: as this machine trusts.
	Authority string `yaml:"authority"`
}

func (m Modal) empty() bool {
	return m.App == "" && m.Environment == "" && len(m.Regions) == 0 && len(m.GPUs) == 0 && !m.NoBake && m.Authority == ""
}

// check looks at what a modal pool has, and that no other pool has it.
func (m Modal) check(path string, p Pool) Faults {
	if p.Provider != ProviderModal {
		if !m.empty() {
			return Faults{{path + ".modal", "is for pools of provider modal"}}
		}
		return nil
	}
	var faults Faults
	if p.SandboxURL != "" {
		faults = append(faults, Fault{path + ".sandbox_url", "is nothing that a modal pool has: Modal says where its sandboxes are"})
	}
	if slices.Contains(m.Regions, "") || slices.Contains(m.GPUs, "") {
		faults = append(faults, Fault{path + ".modal", "has a region or a GPU without a name"})
	}
	if m.Authority != "" {
		if _, err := os.Stat(m.Authority); err != nil {
			faults = append(faults, Fault{path + ".modal.authority", fmt.Sprintf("names a file that cannot be read: %s", err)})
		}
	}
	return faults
}
