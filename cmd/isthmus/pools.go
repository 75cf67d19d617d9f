package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/daytona"
	"github.com/isthmus/isthmus/adapters/e2b"
	"github.com/isthmus/isthmus/adapters/fault"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate/placement"
)

// places are the opened providers of the pools, kept while the configuration is loaded again.
type places struct {
	secrets fleet.Secrets
	log     *slog.Logger
	open    map[string]*place
}

// place is the provider of one pool.
type place struct {
	provider adapters.Provider
	faults   *fault.Provider // nil: nothing goes wrong by plan
	key      *keeping        // of a provider that has one
	// account is what makes another account of the pool when it changes.
	account account
	// firstID and lastID bound the user ids of a pool of this machine.
	firstID, lastID int
	close           func() error
}

// account are the settings of a pool that cannot change under one name.
type account struct {
	provider, apiURL, sandboxURL, domain, isolation, templates string
	noInternetOff, faulty                                      bool
}

func newPlaces(secrets fleet.Secrets, log *slog.Logger) *places {
	return &places{secrets: secrets, log: log, open: map[string]*place{}}
}

// arrange returns the configured pools, opening those that are not open yet. keep takes the outcome over; without
// it, what was opened is closed again.
func (p *places) arrange(c config.Config) (pools []fleet.Pool, keep func(bool) error, _ error) {
	next, opened, changes := map[string]*place{}, []*place{}, []func() error{}
	closeOpened := func() error {
		var errs []error
		for _, one := range opened {
			errs = append(errs, one.close())
		}
		return errors.Join(errs...)
	}
	var facts []placement.Pool
	for _, pool := range c.AllPools() {
		one, there := p.open[pool.Name]
		if !there {
			var err error
			if one, err = p.openPlace(c, pool); err != nil {
				return nil, nil, errors.Join(fmt.Errorf("pool %s: %w", pool.Name, err), closeOpened())
			}
			opened = append(opened, one)
		} else {
			change, err := one.renew(c, pool)
			if err != nil {
				return nil, nil, errors.Join(fmt.Errorf("pool %s: %w", pool.Name, err), closeOpened())
			}
			changes = append(changes, change)
		}
		next[pool.Name] = one
		made := one.pool(c, pool)
		pools, facts = append(pools, made), append(facts, made.Facts)
	}
	if err := placement.CheckPools(facts); err != nil {
		return nil, nil, errors.Join(err, closeOpened())
	}
	return pools, func(kept bool) error {
		if !kept {
			return closeOpened()
		}
		p.open = next
		var errs []error
		for _, change := range changes {
			errs = append(errs, change())
		}
		return errors.Join(errs...)
	}, nil
}

// openPlace opens the provider of a pool, behind a plan of faults where there is one.
func (p *places) openPlace(c config.Config, pool config.Pool) (*place, error) {
	one, err := p.openProvider(c, pool)
	if err != nil || pool.Fault == "" {
		return one, err
	}
	plan, err := readPlan(pool.Fault)
	if err == nil {
		one.faults, err = fault.New(one.provider, plan)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fault: %w", err), one.close())
	}
	one.provider = one.faults
	return one, nil
}

// openProvider opens a provider: the one place that knows all of them.
func (p *places) openProvider(c config.Config, pool config.Pool) (*place, error) {
	one := &place{account: accountOf(pool), key: keptIn(pool.Credential), close: func() error { return nil }}
	if hasKey(pool.Provider) {
		if _, err := one.key.read(); err != nil {
			return nil, err
		}
	}
	switch pool.Provider {
	case config.ProviderLocal:
		opened, err := openMachine(c, pool, p.secrets, p.log)
		if err != nil {
			return nil, err
		}
		one.provider, one.close = opened, opened.Close
		one.firstID, one.lastID = c.FirstID(pool), c.LastID(pool)
	case config.ProviderE2B:
		opened, err := openE2B(pool, one.key.read)
		if err != nil {
			return nil, err
		}
		one.provider = opened
	case config.ProviderVercel:
		opened, err := p.openVercel(pool, one.key.read)
		if err != nil {
			return nil, err
		}
		one.provider = opened
	case config.ProviderDaytona:
		opened, err := p.openDaytona(pool, one.key.read)
		if err != nil {
			return nil, err
		}
		one.provider = opened
	case config.ProviderKubernetes:
		opened, err := openKubernetes(pool, func(boxID string) (string, string) { return p.secrets.Transport(boxID), p.secrets.Control(boxID) }, p.log)
		if err != nil {
			return nil, err
		}
		one.provider, one.close = opened, opened.Close
	case config.ProviderModal:
		opened, end, err := p.openModal(pool, one.key.read)
		if err != nil {
			return nil, err
		}
		one.provider, one.close = opened, end
	default:
		return nil, fmt.Errorf("there is no provider %q", pool.Provider)
	}
	return one, nil
}

func accountOf(pool config.Pool) account {
	one := account{pool.Provider, pool.APIURL, pool.SandboxURL, pool.Domain, pool.Isolation, "", pool.NoInternetOff, pool.Fault != ""}
	if pool.Provider == config.ProviderVercel {
		one.templates = fmt.Sprint(pool.Templates, pool.Vercel)
	}
	if pool.Provider == config.ProviderDaytona {
		one.templates = fmt.Sprint(pool.Templates, pool.Daytona, pool.Max)
	}
	if pool.Provider == config.ProviderKubernetes {
		one.templates = fmt.Sprint(pool.Templates, pool.Kubernetes, pool.Max, pool.MaxLife)
	}
	if pool.Provider == config.ProviderModal {
		one.templates = fmt.Sprint(pool.Templates, pool.Modal)
	}
	if pool.Provider == config.ProviderE2B {
		one.templates = fmt.Sprint(pool.Templates) // the adapter knows them, so that it need not ask the server
	}
	return one
}

// renew looks at what may change under one name; change puts it in place: where the key is kept, and the plan of faults.
func (p *place) renew(c config.Config, pool config.Pool) (change func() error, _ error) {
	if p.account != accountOf(pool) {
		return nil, errors.New("its provider, its addresses, isolation, no_internet_off, an e2b pool's templates, and whether it has a " +
			"fault plan cannot change while Isthmus runs: give the changed pool a name of its own, or start Isthmus again")
	}
	if hasKey(pool.Provider) {
		if _, err := credential(pool.Credential); err != nil {
			return nil, err
		}
	}
	if pool.Provider == config.ProviderLocal {
		if err := p.keepsIDs(c.FirstID(pool), c.LastID(pool)); err != nil {
			return nil, err
		}
	}
	var plan fault.Plan
	if p.faults != nil {
		var err error
		if plan, err = readPlan(pool.Fault); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
	}
	return func() error {
		p.key.move(pool.Credential)
		if p.faults == nil {
			return nil
		}
		return p.faults.Change(plan)
	}, nil
}

// keepsIDs refuses a configuration in which another pool of this machine could be given user ids that this one
// leases: it leases those that it was opened with.
func (p *place) keepsIDs(first, last int) error {
	if first != p.firstID || last != 0 && (p.lastID == 0 || p.lastID > last) {
		return errors.New("its sandboxes may use user ids that the changed configuration gives to another pool of this machine " +
			"(first_id): such a change needs a restart: start Isthmus again")
	}
	return nil
}

// pool is what the fleet is told.
func (p *place) pool(c config.Config, pool config.Pool) fleet.Pool {
	if pool.Provider == config.ProviderVercel {
		pool.Price = vercelPrice(pool.Price)
	}
	if pool.Provider == config.ProviderModal {
		pool.Price = modalPrice(pool.Price)
	}
	if pool.Provider == config.ProviderDaytona {
		pool.Price, pool.CreateTime = daytonaPrice(pool.Price), cmp.Or(pool.CreateTime, daytona.DefaultCreateTime)
	}
	said := placement.FromDescription(pool.Name, p.provider.Describe(), adapters.CapabilitiesOf(p.provider))
	made := fleet.Pool{
		Name: pool.Name, Provider: p.provider, Facts: pool.Facts(said),
		CreatesAtOnce: pool.CreatesAtOnce, CreateRate: pool.Rate, CreateTime: pool.CreateTime,
	}
	if pool.Provider == config.ProviderKubernetes && !pool.Kubernetes.AgentSandbox {
		made.Warm = pool.Kubernetes.Warm // its templates are images of its own names
	}
	if pool.Provider == config.ProviderLocal {
		made.Templates = pool.Templates
		if adapters.PowersOf(p.provider).Stocker != nil {
			made.Warm = c.Local.Warm
		}
		if made.CreatesAtOnce == 0 {
			made.CreatesAtOnce = 2 * runtime.NumCPU() // making a box is work for this machine's processors
		}
	}
	return made
}

func openE2B(pool config.Pool, key func() (string, error)) (*e2b.Provider, error) {
	var templates []e2b.Template
	for _, name := range slices.Sorted(maps.Keys(pool.Templates)) {
		templates = append(templates, e2b.Template{Name: name, Inner: pool.Templates[name]})
	}
	return e2b.New(e2b.Config{
		Templates: templates, APIURL: pool.APIURL, SandboxURL: pool.SandboxURL, Domain: pool.Domain, Key: key, Isolation: pool.Isolation,
		Max: pool.Max.Resources(), NoInternetOff: pool.NoInternetOff, MaxLife: pool.MaxLife,
	})
}

func readPlan(path string) (fault.Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Plan{}, err
	}
	return fault.Parse(text)
}

// localFolder is where a pool of this machine keeps its sandboxes: the one that is there without a configuration
// in the data folder itself.
func localFolder(c config.Config, pool config.Pool) string {
	if pool.Name == localPool {
		return c.Data
	}
	return filepath.Join(c.Data, poolsFolder, pool.Name)
}

// poolsFolder holds the folders of the other pools of this machine.
const poolsFolder = "pools"

// neighbours are the folders of all other pools of this machine, also of those that are not configured any more.
func neighbours(c config.Config, pool config.Pool) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(c.Data, poolsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	folders := []string{c.Data}
	for _, e := range entries {
		folders = append(folders, filepath.Join(c.Data, poolsFolder, e.Name()))
	}
	own := localFolder(c, pool)
	return slices.DeleteFunc(folders, func(folder string) bool { return folder == own }), nil
}
