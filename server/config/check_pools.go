package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/translate/placement"
)

// idsApart is how far the first user ids of two pools of this machine must lie apart: room for 1,024 sandboxes.
const idsApart = 1 << 26

// defaultFirstID is that of adapters/local.
const defaultFirstID = 0x70000000

// variable is what a variable of the environment can be called.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkPools looks at the pools, at what ranks them, and at the requirements that the operator states.
func (c Config) checkPools() Faults {
	var faults Faults
	for i, p := range c.Pools {
		faults = append(faults, p.check(fmt.Sprintf("pools[%d]", i))...)
	}
	faults = append(faults, c.checkFirstIDs()...)
	known := make([]placement.Pool, 0, len(c.Pools))
	for _, p := range c.AllPools() {
		known = append(known, p.Facts(placement.Pool{Name: p.Name, Provider: p.Provider}))
	}
	if err := placement.CheckPools(known); err != nil {
		faults = append(faults, Fault{"pools", err.Error()})
	}
	faults = append(faults, c.Ranking.check()...)
	classes, classFaults := c.classes()
	faults = append(faults, classFaults...)
	faults = append(faults, checkStated("require.keys", placement.Policy, c.Require.Keys, classes, known)...)
	return append(faults, checkStated("require.templates", placement.Template, c.Require.Templates, classes, known)...)
}

func (p Pool) check(path string) Faults {
	var faults Faults
	fault := func(when bool, field, format string, args ...any) {
		if when {
			faults = append(faults, Fault{path + "." + field, fmt.Sprintf(format, args...)})
		}
	}
	e2b := p.Provider == ProviderE2B
	remote := e2b || p.Provider == ProviderVercel || p.Provider == ProviderModal || p.Provider == ProviderDaytona // an account elsewhere, with a key
	fault(p.Name == "", "name", "is missing: sandboxes are bound to it")
	fault(!slices.Contains(providers(), p.Provider), "provider", "must be one of %s, not %q", strings.Join(providers(), ", "), p.Provider)
	fault(e2b && p.APIURL == "", "api_url", "is missing: for example https://api.e2b.app")
	for field, text := range map[string]string{"api_url": p.APIURL, "sandbox_url": p.SandboxURL} {
		u, err := url.Parse(text)
		fault(text != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https"), field, "must be a URL such as https://api.e2b.app, without a password in it")
		fault(text != "" && !remote, field, "is for pools of another provider")
	}
	fault(remote && (p.Credential.Env == "") == (p.Credential.File == ""), "credential", "must say where the key is kept: either env, a variable, or file")
	fault(p.Credential.Env != "" && !variable.MatchString(p.Credential.Env), "credential.env", "must be the name of a variable, never the key itself")
	fault(!remote && p.Credential != (Credential{}), "credential", "is for pools of another provider")
	faults = append(faults, p.Vercel.check(path, p)...)
	faults = append(faults, p.Daytona.check(path, p)...)
	faults = append(faults, p.Kubernetes.check(path, p)...)
	faults = append(faults, p.Modal.check(path, p)...)
	local := p.Provider == ProviderLocal
	fault(local && p.Isolation != "" && p.Isolation != "gvisor", "isolation", "of this machine is empty for that of local.isolation, or gvisor, not %q", p.Isolation)
	fault((p.Provider == ProviderVercel || p.Provider == ProviderModal) && p.Isolation != "", "isolation", "is known of the provider %s", p.Provider)
	fault(p.Rate < 0, "rate", "must not be negative; 0 is no limit")
	fault(p.CreatesAtOnce < 0, "creates_at_once", "must not be negative; 0 is no limit")
	fault(p.CreateTime < 0, "create_time", "must not be negative; 0 is a minute")
	fault(p.FirstID < 0 || p.FirstID > maxID, "first_id", "must be between 0 and %d", maxID)
	if _, err := placement.FromPairs(placement.PoolDefault, p.Require, nil); err != nil {
		fault(true, "require", "%s", err)
	}
	if p.Fault != "" {
		_, err := os.Stat(p.Fault)
		fault(err != nil, "fault", "names a file that cannot be read: %s", err)
	}
	return faults
}

// checkFirstIDs keeps pools of this machine from giving one user id to two sandboxes.
func (c Config) checkFirstIDs() Faults {
	var faults Faults
	for i, p := range c.Pools {
		for _, other := range c.Pools[:i] {
			apart := c.FirstID(p) - c.FirstID(other)
			if c.leasesIDs(p) && c.leasesIDs(other) && max(apart, -apart) < idsApart {
				faults = append(faults, Fault{fmt.Sprintf("pools[%d].first_id", i),
					fmt.Sprintf("must lie %d away from the %d of pool %s, so that no two sandboxes of this machine share a user id",
						idsApart, c.FirstID(other), other.Name)})
			}
		}
	}
	return faults
}

// leasesIDs reports whether the sandboxes of a pool have user ids of this machine's. Under gVisor they have a kernel of
// their own, with its own users.
func (c Config) leasesIDs(p Pool) bool {
	return p.Provider == ProviderLocal && cmp.Or(p.Isolation, c.Local.Isolation) != "gvisor"
}

// FirstID returns the first user id of the sandboxes of a pool of this machine.
func (c Config) FirstID(p Pool) int { return cmp.Or(p.FirstID, c.Local.FirstID, defaultFirstID) }

// LastID returns the last user id of the sandboxes of a pool of this machine, where another pool's begin; 0: there
// is none behind it.
func (c Config) LastID(p Pool) int {
	last := 0
	for _, other := range c.Pools {
		if first := c.FirstID(other); c.leasesIDs(other) && first > c.FirstID(p) && (last == 0 || first <= last) {
			last = first - 1
		}
	}
	return last
}

func (r Ranking) check() Faults {
	var faults Faults
	if len(r.Rank) > 0 {
		if err := (placement.Settings{Rank: r.Rank}).Check(); err != nil {
			faults = append(faults, Fault{"ranking.rank", err.Error()})
		}
	}
	for path, figures := range map[string]map[string]float64{"ranking.tolerance": r.Tolerance, "ranking.weights": r.Weights} {
		for _, objective := range slices.Sorted(maps.Keys(figures)) {
			if err := (placement.Settings{Rank: []string{objective}}).Check(); err != nil || figures[objective] < 0 {
				faults = append(faults, Fault{path + "." + objective, "must be an objective of ranking, with a figure that is not negative"})
			}
		}
	}
	return faults
}

// classes reads the workload classes.
func (c Config) classes() (placement.Classes, Faults) {
	all := placement.Classes{}
	var faults Faults
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		one, err := placement.ParseClasses(map[string]map[string]string{name: c.Classes[name]})
		if err != nil {
			faults = append(faults, Fault{"classes." + name, err.Error()})
			continue
		}
		maps.Copy(all, one)
	}
	return all, faults
}

// checkStated reads requirements that the operator states, and whether the pools that they name are there.
func checkStated(path string, from placement.Source, stated map[string]map[string]string, classes placement.Classes, known []placement.Pool) Faults {
	var faults Faults
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		r, err := placement.FromPairs(from, stated[name], classes)
		if err == nil {
			err = placement.CheckDestination(r, known)
		}
		if err != nil {
			faults = append(faults, Fault{path + "." + name, err.Error()})
		}
	}
	return faults
}
