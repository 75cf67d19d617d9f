package fleet

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/translate/placement"
)

var writeDay = flag.Bool("day", false, "simulate the whole day and write docs/ranking.md and docs/ranking.svg")

// simulated is a pool whose failures, price and latency drift over the day.
type simulated struct {
	facts                  placement.Pool
	health                 *health
	fails, latency, hourly float64 // at the middle of the day
	phase                  float64
	outage                 time.Duration // when it begins; it lasts an hour
	dice                   *rand.Rand
}

// drift is a slow wave around 1.
func (s *simulated) drift(at time.Duration) float64 {
	return 1 + 0.6*math.Sin(2*math.Pi*at.Hours()/24+s.phase)
}

// attempt is one create at a time of the day.
func (s *simulated) attempt(at time.Duration) (took time.Duration, err error) {
	took = time.Duration(s.latency * s.drift(at) * (0.7 + 0.6*s.dice.Float64()) * float64(time.Second))
	switch {
	case s.outage > 0 && at > s.outage && at < s.outage+time.Hour:
		return took, adapters.Errorf(adapters.KindUnavailable, "an outage")
	case s.dice.Float64() < s.fails*s.drift(at):
		return took, adapters.Errorf(adapters.KindCapacity, "no room")
	}
	return took, nil
}

// day is what came of all creates under one ranking.
type day struct {
	ranking                string
	creates, failed, tried int
	first                  int // creates whose first attempt succeeded
	cost, seconds          float64
	worst                  []float64
}

const poolsOfADay = 20

// simulate runs a day of creates in virtual time, with the same dice for every ranking.
func simulate(t *testing.T, rank []string, creates int) day {
	result := day{ranking: strings.Join(rank, ", "), creates: creates}
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(7, 11))
		var all []*simulated
		for i := range poolsOfADay {
			s := &simulated{
				fails: 0.3 * dice.Float64() * dice.Float64(), latency: 0.2 + 3*dice.Float64(), hourly: 0.05 + 0.4*dice.Float64(),
				phase: 2 * math.Pi * dice.Float64(), health: newHealth("", unnoted), dice: rand.New(rand.NewPCG(uint64(i), 1)),
			}
			if i%4 == 0 {
				s.outage = time.Duration(dice.Float64() * float64(22*time.Hour))
			}
			s.facts = placement.FromDescription(fmt.Sprintf("pool-%02d", i), (&fake{}).Describe(), adapters.CapabilitiesOf(&fake{}))
			all = append(all, s)
		}
		began, template := time.Now(), &adapters.Template{Name: "base", Resources: adapters.Resources{CPU: 2, MemoryMB: 1024}}
		for range creates {
			time.Sleep(24 * time.Hour / time.Duration(creates))
			result.create(t, all, time.Since(began), template, rank)
		}
	})
	return result
}

// create is one create: decided by the figures of the moment, and tried in that order.
func (d *day) create(t *testing.T, all []*simulated, at time.Duration, template *adapters.Template, rank []string) {
	offers := make([]placement.Offer, len(all))
	byName := make(map[string]*simulated, len(all))
	for i, s := range all {
		s.facts.Price = placement.Price{Billing: placement.BillSession, SessionHour: s.hourly * s.drift(at+6*time.Hour)}
		offers[i] = placement.Offer{Pool: s.facts, Live: s.health.live(time.Now()), Template: template}
		byName[s.facts.Name] = s
	}
	plan, err := placement.Decide(placement.Request{Template: "base", Timeout: time.Hour}, offers, time.Now(), placement.Settings{Rank: rank})
	require.NoError(t, err)
	waited := time.Duration(0)
	for i, choice := range plan.Order {
		s := byName[choice.Pool]
		took, failure := s.attempt(at)
		done, err := s.health.admit(time.Now().Add(-took), true)
		if err != nil {
			continue
		}
		done(failure)
		d.tried++
		waited += took
		if failure == nil {
			if i == 0 {
				d.first++
			}
			d.cost += s.facts.Price.SessionHour
			d.seconds += waited.Seconds()
			d.worst = append(d.worst, waited.Seconds())
			return
		}
	}
	d.failed++
}

func TestSimulatedDay(t *testing.T) {
	creates := 2_000
	if *writeDay {
		creates = 100_000
	}
	began := time.Now()
	var days []day
	for _, rank := range [][]string{{placement.RankOrder}, {placement.RankCost}, {placement.RankStartup}, {placement.RankReliability},
		{placement.RankCost, placement.RankReliability}, {placement.RankBalanced}} {
		days = append(days, simulate(t, rank, creates))
	}
	t.Logf("%d creates for each of %d rankings in %s", creates, len(days), time.Since(began))
	fixed, cost, startup, reliability := days[0], days[1], days[2], days[3]
	require.Less(t, cost.cost, fixed.cost, "cost is cheaper than the fixed order")
	require.Less(t, startup.seconds, fixed.seconds, "startup is faster")
	require.Greater(t, reliability.first, fixed.first, "reliability succeeds more often at once")
	for _, d := range days {
		require.Zero(t, d.failed, "%s: a create fails only when every pool does", d.ranking)
	}
	if *writeDay {
		require.NoError(t, os.WriteFile("../../docs/ranking.md", []byte(dayPage(days)), 0o644))
		require.NoError(t, os.WriteFile("../../docs/ranking.svg", []byte(dayPlot(days)), 0o644))
	}
}
