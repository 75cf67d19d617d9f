package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func live(perHour float64, start time.Duration, success float64) func(*Offer) {
	return func(o *Offer) {
		o.Pool.Price = Price{Billing: BillSession, SessionHour: perHour}
		o.Live.StartP50 = Milliseconds(start)
		o.Live.SuccessRate, o.Live.Creates = success, 100
	}
}

// The table of requirement S4-1.
func threePools() []Offer {
	return []Offer{
		offer("A", live(0.40, 100*time.Millisecond, 0.95)),
		offer("B", live(0.05, 3*time.Second, 0.80)),
		offer("C", live(0.20, time.Second, 0.999)),
	}
}

func TestObjectives(t *testing.T) {
	cases := []struct {
		line string
		want []string
	}{
		{"", []string{"A", "B", "C"}},
		{"rank=order", []string{"A", "B", "C"}},
		{"rank=cost", []string{"B", "C", "A"}},
		{"rank=reliability", []string{"C", "A", "B"}},
		{"rank=startup", []string{"A", "C", "B"}},
		{"rank=balanced", []string{"C", "A", "B"}},
		{"pools=C,A", []string{"C", "A"}},
		{"pools=C,A; rank=startup", []string{"A", "C"}},
		{"provider=B", []string{"B"}},
		{"provider=B; fallback=C,A; rank=startup", []string{"B", "C", "A"}},
		{"fallback=C", []string{"C", "A", "B"}},
		{"fallback=C; rank=cost", []string{"C", "B", "A"}},
		{"provider=B; fallback=A; pools=A,C", []string{"A"}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, order(t, asks(t, c.line), threePools(), Settings{}), c.line)
	}
	require.Equal(t, []string{"B", "C", "A"}, order(t, asks(t, ""), threePools(), Settings{Rank: []string{RankCost}}), "the operator's ranking")
	require.Equal(t, []string{"A", "B", "C"}, order(t, asks(t, "rank=order"), threePools(), Settings{Rank: []string{RankCost}}))
}

func TestAboutEqualGoesOnToTheNextObjective(t *testing.T) {
	offers := []Offer{
		offer("A", live(1.00, 3*time.Second, 1)),
		offer("B", live(1.04, time.Second, 1)),
		offer("C", live(1.06, 100*time.Millisecond, 1)), // more than 5 % above A
	}
	require.Equal(t, []string{"B", "A", "C"}, order(t, asks(t, "rank=cost,startup"), offers, Settings{}))
	exact := Settings{Tolerance: map[string]float64{RankCost: 0}}
	require.Equal(t, []string{"A", "B", "C"}, order(t, asks(t, "rank=cost,startup"), offers, exact))
	offers[1].Pool.Weight = 2
	require.Equal(t, []string{"B", "A", "C"}, order(t, asks(t, "rank=cost"), offers, Settings{}), "weight decides among equals")
	require.Equal(t, []string{"A", "B", "C"}, order(t, asks(t, ""), offers, Settings{}), "but never in the configured order")
}

func TestWhatIsNotKnownIsNeutral(t *testing.T) {
	unknown := offer("N")
	offers := append([]Offer{unknown}, threePools()...)
	require.Equal(t, []string{"B", "N", "C", "A"}, order(t, asks(t, "rank=cost"), offers, Settings{}))
	require.Equal(t, []string{"A", "N", "C", "B"}, order(t, asks(t, "rank=startup"), offers, Settings{}))
	require.Equal(t, []string{"C", "N", "A", "B"}, order(t, asks(t, "rank=reliability"), offers, Settings{}))
	require.Equal(t, []string{"N", "M"}, order(t, asks(t, "rank=balanced"), []Offer{unknown, offer("M")}, Settings{}))
	// One failed create of a new pool does not put it behind one that fails every fifth.
	once := offer("once", func(o *Offer) { o.Live.SuccessRate, o.Live.Creates = 0, 1 })
	require.Equal(t, []string{"C", "A", "once", "B"},
		order(t, asks(t, "rank=reliability"), append([]Offer{once}, threePools()...), Settings{Tolerance: map[string]float64{RankReliability: 0}})[:4])
}

// The shapes of requirement S2-17, with the prices of the provider pages.
func TestShapesOfWork(t *testing.T) {
	offers := []Offer{
		offer("daytona", pool(func(p *Pool) {
			p.Price = Price{Billing: BillProvisioned, CPUHour: 0.0504, MemoryGiBHour: 0.0162, DiskGiBHour: 0.000108, DiskFreeGiB: 5}
		})),
		offer("vercel", pool(func(p *Pool) { p.Price = Price{Billing: BillActiveCPU, CPUHour: 0.128, MemoryGiBHour: 0.0212} })),
		offer("own", pool(func(p *Pool) { p.Price = Price{Billing: BillSession, SessionHour: 0.15} })),
		offer("modal", pool(func(p *Pool) {
			p.Price = Price{Billing: BillProvisioned, CPUHour: 0.071, MemoryGiBHour: 0.0242, GPUHour: map[string]float64{"h100": 3.95}}
			p.GPUs = []GPU{{Kind: "H100"}}
		})),
	}
	cases := []struct {
		line  string
		first string
		of    int
	}{
		{"", "daytona", 4},
		{"workload=bursty", "vercel", 4},
		{"workload=bursty; rank=cost", "vercel", 4},
		{"workload=long_lived", "own", 4},
		{"rank=cost; cpu-active=100", "daytona", 4},
		{"workload=gpu", "modal", 1},
		{"workload=bursty; rank=order", "daytona", 4},
	}
	for _, c := range cases {
		got := order(t, asks(t, c.line), offers, Settings{})
		require.Len(t, got, c.of, c.line)
		require.Equal(t, c.first, got[0], c.line)
	}
}

func TestPreferredRegions(t *testing.T) {
	offers := []Offer{
		offer("us", pool(func(p *Pool) { p.Regions = []Region{{Name: "us-1"}} })),
		offer("nowhere"),
		offer("eu", pool(func(p *Pool) { p.Regions, p.RegionChoice = []Region{{Name: "us-1"}, {Name: "eu-1"}}, true })),
	}
	require.Equal(t, "eu", order(t, asks(t, "near=eu; rank=region"), offers, Settings{})[0])
	require.Equal(t, "eu", order(t, asks(t, "near=eu; rank=balanced"), offers, Settings{})[0])
	require.Equal(t, "us", order(t, asks(t, "near=eu"), offers, Settings{})[0], "it is no ranking by itself")
}

// place decides for many creates of one name and counts them, as the fleet does.
func place(t *testing.T, line string, offers []Offer, creates int) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range creates {
		first := order(t, asks(t, line), offers, Settings{})[0]
		counts[first]++
		for i := range offers {
			if offers[i].Pool.Name == first {
				offers[i].Live.Affine++
				offers[i].Live.Spread++
				offers[i].Live.Sandboxes++
			}
		}
	}
	return counts
}

func TestSpreading(t *testing.T) {
	for _, mode := range []string{"", "; spread-mode=hard"} {
		offers := []Offer{offer("a"), offer("b"), offer("c")}
		for n := range 20 {
			counts := place(t, "spread=crawler; rank=cost"+mode, offers, 1)
			require.Len(t, counts, 1)
			low, high := 1<<30, 0
			for _, o := range offers {
				low, high = min(low, o.Live.Spread), max(high, o.Live.Spread)
			}
			require.LessOrEqual(t, high-low, 1, "after %d creates", n+1)
		}
	}
	full := offer("a", pool(func(p *Pool) { p.Concurrency = 1 }))
	require.Equal(t, map[string]int{"a": 1, "b": 4}, place(t, "spread=crawler", []Offer{full, offer("b")}, 5), "soft gives way")
	hard := asks(t, "spread=crawler; spread-mode=hard")
	ahead := offer("b", func(o *Offer) { o.Live.Spread = 1 })
	require.Equal(t, []string{"a"}, order(t, hard, []Offer{ahead, offer("a")}, Settings{}))
}

func TestAffinity(t *testing.T) {
	offers := []Offer{offer("a"), offer("b", pool(func(p *Pool) { p.Concurrency = 3 }))}
	offers[1].Live.Affine = 1
	require.Equal(t, map[string]int{"b": 3, "a": 2}, place(t, "affinity=build; rank=cost", offers, 5), "soft, while there is room")

	hard := asks(t, "affinity=build; affinity-mode=hard")
	full := []Offer{offer("a"), offer("b", func(o *Offer) { o.Live.Affine, o.Live.Sandboxes, o.Pool.Concurrency = 1, 1, 1 })}
	_, err := Decide(hard, full, noon(), Settings{})
	require.ErrorContains(t, err, "at the moment")
	require.ErrorContains(t, err, "affinity=build")
	require.Equal(t, []string{"a", "b"}, order(t, hard, []Offer{offer("a"), offer("b")}, Settings{}), "the first one is free to choose")
}

func BenchmarkDecide(b *testing.B) {
	var offers []Offer
	for i := range 50 {
		offers = append(offers, offer(fmt.Sprintf("p%02d", i), live(float64(i%7), time.Duration(i%5+1)*time.Second, 0.9+float64(i%10)/100)))
		offers[i].Pool.Price = Price{Billing: BillActiveCPU, CPUHour: float64(i%7 + 1), MemoryGiBHour: 1}
	}
	for _, line := range []string{"", "rank=cost,startup,reliability; cpu=2; labels=a", "rank=balanced"} {
		for i := range offers {
			offers[i].Pool.Labels = []string{"a"}
		}
		req := asks(b, line)
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decide(req, offers, noon(), Settings{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRequirements(b *testing.B) {
	b.ReportAllocs()
	policy, _ := Parse(Policy, "isolation=gvisor; pools=a,b,c", nil)
	for b.Loop() {
		r, err := Parse(Header, "rank=cost,startup; cpu=4; pools=a,b", nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Merge(Stated{Policy, policy}, Stated{Header, r}); err != nil {
			b.Fatal(err)
		}
	}
}
