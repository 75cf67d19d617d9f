package placement

import (
	"slices"
	"strconv"

	"github.com/isthmus/isthmus/adapters"
)

// Measured is what envd sees from inside a new sandbox. A zero value was not measured.
type Measured struct {
	Resources adapters.Resources `json:"resources"`
	// Isolation is what is proved from inside; empty or unknown proves nothing either way.
	Isolation string `json:"isolation,omitempty"`
	Region    string `json:"region,omitempty"`
	// Kernel and BootID are those of the kernel that the sandbox runs on.
	Kernel string `json:"kernel,omitempty"`
	BootID string `json:"bootID,omitempty"`
	// Shares names a sandbox, or this machine, that runs on the same kernel; empty: none is known.
	Shares string `json:"shares,omitempty"`
}

// Provable reports whether an isolation can turn out, from inside, to be less than it was claimed to be.
func Provable(isolation string) bool {
	return slices.Index(isolations(), isolation) > slices.Index(isolations(), "container")
}

// measuredShare is how much of a size must be there: a kernel and a file system keep some for themselves.
const measuredShare = 0.9

// Shortfall returns what a sandbox lacks of what was required of it: empty when it is as required. Sizes that
// nobody required are not looked at, nor is what was not measured.
func (c Choice) Shortfall(m Measured) []Unmet {
	var short []Unmet
	size := func(key string, wanted, has int, share float64, write func(int) string) {
		if wanted > 0 && has > 0 && float64(has) < float64(wanted)*share {
			short = append(short, Unmet{Requirement: key, Wanted: write(wanted), Has: write(has)})
		}
	}
	size("cpu", c.Need.CPU, m.Resources.CPU, 1, strconv.Itoa)
	size("memory", c.Need.MemoryMB, m.Resources.MemoryMB, measuredShare, mib)
	size("disk", c.Need.DiskMB, m.Resources.DiskMB, measuredShare, mib)
	proved := slices.Index(isolations(), m.Isolation)
	if c.Need.Isolation != "" && proved >= 0 && proved < slices.Index(isolations(), c.Need.Isolation) {
		short = append(short, Unmet{Requirement: "isolation", Wanted: c.Need.Isolation, Has: m.Isolation})
	}
	if m.Region == "" {
		return short
	}
	for _, group := range c.Need.Regions {
		if !(Region{Name: m.Region}).inOneOf(group) && m.Region != c.Region {
			key := Key{field: regions(func(r *Requirements) *[][]string { return &r.Regions })}
			return append(short, Unmet{Requirement: "region", Wanted: key.text(c.Need), Has: m.Region})
		}
	}
	return short
}
