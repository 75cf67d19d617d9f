package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// Pool is one configured place for boxes: an account at a provider.
type Pool struct {
	// Name is bound to sandboxes for ever, [a-z0-9-]+.
	Name     string
	Provider adapters.Provider
	// Facts are what creates are held against; without a name: what the provider says of itself.
	Facts placement.Pool
	// Templates are the pool's own names of templates, by the name that clients use.
	Templates map[string]string
	// CreatesAtOnce bounds how many boxes are made at a time; the others wait in turn. 0: no bound. Where
	// boxes are made by this machine's own processors, doing them in turn serves everybody sooner.
	CreatesAtOnce int
	// CreateRate bounds the creates in a second; 0: no bound. CreateTime bounds one attempt; 0: Timing.Create.
	CreateRate float64
	CreateTime time.Duration
	// Warm is how many boxes are kept ready, by template name. They have the template's own sizes and internet
	// access, count towards no team, and give way where the pool is full. It needs the power Stocker.
	Warm map[string]int
}

// Config is what a fleet is made of.
type Config struct {
	Store *store.Store
	// Pools in the order in which a create tries them where nothing else decides; at least one.
	Pools []Pool
	// Ranking is how pools that qualify are ordered.
	Ranking placement.Settings
	// Measure tells what a new box is seen to be from inside, for the check against what was required; nil: the
	// provider's Meter is asked, where it has one.
	Measure func(ctx context.Context, pool, boxID string) (placement.Measured, error)
	Secrets Secrets
	// TeamConcurrency is the largest number of sandboxes of one team that are not paused; 0: no limit.
	TeamConcurrency int
	// LongestLife is how old a sandbox may become; 0: 24 hours.
	LongestLife time.Duration
	// KillOnExit ends every sandbox before Run returns.
	KillOnExit bool
	Logger     *slog.Logger
	// Timing is for tests; zero values are the defaults.
	Timing Timing
}

// Timing holds the intervals of the background work.
type Timing struct {
	Create     time.Duration // the longest time of one attempt at a create; 60 s
	Call       time.Duration // the longest time of any other call of a provider; 30 s
	Change     time.Duration // the longest time of a pause, a resume or a snapshot; 2 min
	Settle     time.Duration // how long an unknown outcome is looked up before it is left to Reconcile; 10 s
	Grace      time.Duration // the age at which a box without a record is an orphan; 60 s
	Reconcile  time.Duration // between two comparisons with the providers; 30 s
	Sample     time.Duration // between two looks at a sandbox's use; 5 s
	IdleSample time.Duration // between two samples of a sandbox that uses no CPU; 60 s
	Refill     time.Duration // after a create, until the next box is made ahead: the new sandbox's first command goes first; 100 ms
	Stop       time.Duration // how long started work may go on after the stop; 20 s
}

// How far the box's own deadline lies behind ours, so that it only matters when the facade is away. A sandbox that is
// to be paused at its end is no one's to lose: the facade gets a day to come back.
const (
	backstopSlack  = 5 * time.Minute
	autoPauseSlack = 24 * time.Hour
)

func slack(sb store.Sandbox) time.Duration {
	if sb.AutoPause {
		return autoPauseSlack
	}
	return backstopSlack
}

// Fleet is safe for concurrent use. Its background work is done by Run.
type Fleet struct {
	cfg     Config
	store   *store.Store
	log     *slog.Logger
	pools   pools
	ranking atomic.Pointer[placement.Settings]
	carrier carrier
	// reloading lets one reload be at a time.
	reloading sync.Mutex
	tasks     *tasks
	homes     homes
	makings   makings
	endings   endings
	moves     moves
	stats     stats
	kernels   kernels
	// nudge wakes the reaper: a deadline has moved.
	nudge chan struct{}
	// ready is closed when the records were first compared with the providers' lists, or Timing.Call has passed.
	ready chan struct{}
	// stopped is closed when Run begins to stop.
	stopped chan struct{}
}

// New makes a fleet. Nothing runs until Run.
func New(cfg Config) (*Fleet, error) {
	if cfg.Store == nil {
		return nil, errors.New("fleet: a store is needed")
	}
	cfg.LongestLife = cmp.Or(cfg.LongestLife, 24*time.Hour)
	cfg.Timing = cfg.Timing.withDefaults()
	f := &Fleet{
		cfg:     cfg,
		store:   cfg.Store,
		log:     cfg.Logger,
		tasks:   newTasks(),
		nudge:   make(chan struct{}, 1),
		ready:   make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.ranking.Store(&cfg.Ranking)
	set, _, err := f.arrange(cfg.Pools)
	if err != nil {
		return nil, err
	}
	f.pools.replace(set)
	return f, nil
}

// Ready is closed once Run has compared the records with the providers' lists: from then on every sandbox
// that survived can be reached. A provider that does not answer delays it by Timing.Call at most.
func (f *Fleet) Ready() <-chan struct{} { return f.ready }

// MaxLife is the largest age of a sandbox.
func (f *Fleet) MaxLife() time.Duration { return f.cfg.LongestLife }

// Tokens returns the clients' tokens of a sandbox: envd's is empty when it is not secure, traffic's when its
// traffic is public. Those of a native pool are that pool's; they are empty while the sandbox cannot be reached.
func (f *Fleet) Tokens(sb store.Sandbox) (envdToken, traffic string) {
	p := f.pools.get(sb.Pool)
	if p == nil || p.native == nil {
		return f.derive(sb)
	}
	if one := f.homes.get(sb.ID); one != nil {
		return one.route.Inner.EnvdToken, one.route.Inner.TrafficToken
	}
	return "", ""
}

// derive makes the tokens of a sandbox in which there is our envd.
func (f *Fleet) derive(sb store.Sandbox) (envdToken, traffic string) {
	if sb.Secure {
		envdToken = f.cfg.Secrets.EnvdToken(sb.ID)
	}
	if !sb.Network.PublicTraffic() {
		traffic = f.cfg.Secrets.TrafficToken(sb.ID)
	}
	return envdToken, traffic
}

func (t Timing) withDefaults() Timing {
	return Timing{
		Create:     cmp.Or(t.Create, time.Minute),
		Call:       cmp.Or(t.Call, 30*time.Second),
		Change:     cmp.Or(t.Change, 2*time.Minute),
		Settle:     cmp.Or(t.Settle, 10*time.Second),
		Grace:      cmp.Or(t.Grace, time.Minute),
		Reconcile:  cmp.Or(t.Reconcile, 30*time.Second),
		Sample:     cmp.Or(t.Sample, 5*time.Second),
		IdleSample: cmp.Or(t.IdleSample, time.Minute),
		Refill:     cmp.Or(t.Refill, 100*time.Millisecond),
		Stop:       cmp.Or(t.Stop, 20*time.Second),
	}
}

// now is the clock of records: UTC in whole milliseconds, so that what clients read back compares equal.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
