package config

// ProviderVercel is a pool of Vercel Sandboxes.
const ProviderVercel = "vercel"

// Vercel is the account of a pool of that provider. Its token is the pool's credential; api_url and sandbox_url are left
// out but for a simulated cloud, and templates name images of the Vercel Container Registry, "" the universal one.
type Vercel struct {
	// Team and Project are the vendor's ids, like team_… and prj_….
	Team    string `yaml:"team"`
	Project string `yaml:"project"`
	// Plan is hobby, pro or enterprise, whose limits are known; empty: pro.
	Plan string `yaml:"plan"`
	// Region is where sandboxes run, in the vendor's words; empty: where the vendor wants.
	Region string `yaml:"region"`
	// NoBake uploads envd at every create instead of keeping a snapshot with it in the account.
	NoBake bool `yaml:"no_bake"`
}

// check looks at what a vercel pool needs, and that no other pool has it.
func (v Vercel) check(path string, p Pool) Faults {
	if p.Provider != ProviderVercel {
		if v != (Vercel{}) {
			return Faults{{path + ".vercel", "is for pools of provider vercel"}}
		}
		return nil
	}
	var faults Faults
	for field, text := range map[string]string{"team": v.Team, "project": v.Project} {
		if text == "" {
			faults = append(faults, Fault{path + ".vercel." + field, "is missing: the id is in the settings of the " + field + " at Vercel"})
		}
	}
	return faults
}
