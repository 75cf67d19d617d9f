package placement

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestRefusals(t *testing.T) {
	resting := func(kind adapters.Kind, d time.Duration) func(*Offer) {
		return func(o *Offer) { o.Live.RestUntil, o.Live.RestKind = noon().Add(d), kind }
	}
	open := func(o *Offer) { o.Live.Breaker, o.Live.BreakerUntil = BreakerOpen, noon().Add(7*time.Second) }
	cases := []struct {
		name   string
		line   string
		offers []Offer
		kind   adapters.Kind
		after  time.Duration
		says   []string
	}{
		{"never", "isolation=microvm", []Offer{offer("a"), offer("b")}, adapters.KindUnsupported, 0,
			[]string{"a lacks isolation=microvm (container)", "b lacks isolation", "Ask for less"}},
		{"never, although one is only closed", "isolation=microvm", []Offer{offer("a", open)}, adapters.KindUnsupported, 0, []string{"isolation"}},
		{"breaker", "", []Offer{offer("a", open)}, adapters.KindCapacity, 0, []string{"a's breaker is open until 2026-11-29T12:00:07Z, after failures", "later"}},
		{"one never, one later", "labels=x", []Offer{offer("a"), offer("b", open, pool(func(p *Pool) { p.Labels = []string{"x"} }))}, adapters.KindCapacity, 0,
			[]string{"labels=x", "breaker"}},
		{"all rest", "", []Offer{offer("a", resting(adapters.KindRateLimited, 9*time.Second)), offer("b", resting(adapters.KindRateLimited, 4*time.Second))},
			adapters.KindRateLimited, 4 * time.Second, []string{"rate-limited"}},
		{"all rest that could serve", "labels=x", []Offer{offer("a"), offer("b", resting(adapters.KindRateLimited, time.Second), pool(func(p *Pool) { p.Labels = []string{"x"} }))},
			adapters.KindRateLimited, time.Second, nil},
		{"one rests, one is used up", "", []Offer{offer("a", resting(adapters.KindRateLimited, time.Second)), offer("b", resting(adapters.KindQuota, time.Minute))},
			adapters.KindCapacity, 0, []string{"quota, for 1m0s"}},
		{"draining", "", []Offer{offer("a", pool(func(p *Pool) { p.Draining = true }))}, adapters.KindCapacity, 0, []string{"a is draining"}},
		{"full", "", []Offer{offer("a", pool(func(p *Pool) { p.Concurrency = 1 }), func(o *Offer) { o.Live.Sandboxes = 1 })}, adapters.KindCapacity, 0,
			[]string{"a is full: 1 of 1 sandboxes"}},
		{"unhealthy", "", []Offer{offer("a", func(o *Offer) { o.Live.Unhealthy = "no key" })}, adapters.KindCapacity, 0, []string{"a is unhealthy: no key"}},
		{"lacking and draining", "gpu=any", []Offer{offer("a", pool(func(p *Pool) { p.Draining = true }))}, adapters.KindUnsupported, 0,
			[]string{"a lacks gpu=any (none), and a is draining"}},
		{"no pools", "", nil, adapters.KindUnsupported, 0, []string{"no pool is configured"}},
		{"outside", "pools=a; gpu=any", []Offer{offer("a"), offer("b"), offer("c")}, adapters.KindUnsupported, 0,
			[]string{"a lacks gpu=any (none)", "2 pools are outside of the destination"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			plan, err := Decide(asks(t, c.line), c.offers, noon(), Settings{})
			var refusal *Refusal
			require.ErrorAs(t, err, &refusal)
			require.Empty(t, plan.Order)
			require.Equal(t, c.kind, adapters.KindOf(err))
			require.Equal(t, CodeNoEligibleProvider, refusal.Cause.Code)
			require.Equal(t, c.after, refusal.Cause.RetryAfter)
			require.Len(t, refusal.Attempts, len(c.offers))
			for _, part := range c.says {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestDetailsOfARefusal(t *testing.T) {
	req := asks(t, "isolation=microvm; network=allow_domains; exec=true")
	_, err := Decide(req, []Offer{offer("a")}, noon(), Settings{})
	var refusal *Refusal
	require.ErrorAs(t, err, &refusal)
	details, err := json.Marshal(refusal.Details())
	require.NoError(t, err)
	require.JSONEq(t, `{"attempts":[{"provider":"a","pool":"a","unmet_requirements":["isolation","network.allow_domains"],
		"unmet":[{"requirement":"isolation","wanted":"microvm","has":"container"},{"requirement":"network.allow_domains"}]}]}`, string(details))
}

func TestDestinationsThatAreWrong(t *testing.T) {
	modal := func(o *Offer) { o.Pool.Provider = "modal" }
	offers := []Offer{offer("a", modal), offer("b", modal), offer("c")}
	cases := map[string][]string{
		"pools=x":                    {"no pool or provider x", "a, b, c"},
		"provider=x":                 {"no pool or provider x"},
		"fallback=c,x":               {"no pool or provider x"},
		"provider=c; pools=a,b":      {"provider=c", "pools=a,b", "contradict"},
		"provider=modal; fallback=a": {"pool a twice"},
		"fallback=b,modal":           {"pool b twice"},
	}
	for line, says := range cases {
		_, err := Decide(asks(t, line), offers, noon(), Settings{})
		require.Equal(t, adapters.KindInvalid, adapters.KindOf(err), line)
		for _, part := range says {
			require.ErrorContains(t, err, part, line)
		}
		require.Error(t, CheckDestination(asks(t, line).Require, []Pool{offers[0].Pool, offers[1].Pool, offers[2].Pool}), line)
	}
	require.Equal(t, []string{"c", "a", "b"}, order(t, asks(t, "provider=c; fallback=modal"), offers, Settings{}))
}

func TestATemplateThatNoPoolHas(t *testing.T) {
	without := func(o *Offer) { o.Template = nil }
	_, err := Decide(asks(t, ""), []Offer{offer("a", without), offer("b", without)}, noon(), Settings{})
	require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
	require.Equal(t, []string{"b"}, order(t, asks(t, ""), []Offer{offer("a", without), offer("b")}, Settings{}))
	req := asks(t, "")
	req.Source = SourceOCI
	require.Equal(t, []string{"b"}, order(t, req, []Offer{offer("a"), offer("b", pool(func(p *Pool) { p.Sources = []string{SourceOCI} }))}, Settings{}))
}

func TestAfter(t *testing.T) {
	table := map[adapters.Kind]Consequence{
		adapters.KindInvalid:        {Step: Stop, Mark: MarkNone},
		adapters.KindNotFound:       {Step: Next, Mark: MarkNone},
		adapters.KindExists:         {Step: Reconcile, Mark: MarkNone},
		adapters.KindPrecondition:   {Step: Stop, Mark: MarkNone},
		adapters.KindCapacity:       {Step: Next, Mark: MarkFailure},
		adapters.KindRateLimited:    {Step: Next, Mark: MarkNone, Rest: true, RestFor: 5 * time.Second},
		adapters.KindTeamLimit:      {Step: Stop, Mark: MarkNone},
		adapters.KindQuota:          {Step: Next, Mark: MarkNone, Rest: true, RestFor: time.Minute},
		adapters.KindUnavailable:    {Step: Next, Mark: MarkFailure},
		adapters.KindCredentials:    {Step: Next, Mark: MarkOpen},
		adapters.KindUnsupported:    {Step: Next, Mark: MarkNone},
		adapters.KindDeclined:       {Step: Next, Mark: MarkNone},
		adapters.KindUnknownOutcome: {Step: Reconcile, Mark: MarkFailure},
		adapters.KindInternal:       {Step: Stop, Mark: MarkFailure},
		FailedPostCheck:             {Step: Next, Mark: MarkFailure},
		"something new":             {Step: Stop, Mark: MarkFailure},
	}
	for kind, want := range table {
		require.Equal(t, want, After(kind), kind)
	}
	limited := After(adapters.KindRateLimited)
	require.Equal(t, 20*time.Second, limited.Resting(20*time.Second))
	require.Equal(t, 5*time.Second, limited.Resting(0))
	require.Equal(t, 10*time.Minute, limited.Resting(time.Hour))
	require.Zero(t, After(adapters.KindCapacity).Resting(time.Minute))
}

func TestExhausted(t *testing.T) {
	open := Considered{Pool: "z", Unmet: []Unmet{{Requirement: UnmetBreaker, Passing: true}}}
	never := Considered{Pool: "y", Unmet: []Unmet{{Requirement: "isolation", Wanted: "vm"}}}
	cases := []struct {
		name     string
		attempts []adapters.Kind
		others   []Considered
		kind     adapters.Kind
	}{
		{"capacity", []adapters.Kind{adapters.KindCapacity, adapters.KindUnsupported}, nil, adapters.KindCapacity},
		{"all rate-limited", []adapters.Kind{adapters.KindRateLimited, adapters.KindRateLimited}, []Considered{never}, adapters.KindRateLimited},
		{"one rate-limited", []adapters.Kind{adapters.KindRateLimited, adapters.KindUnavailable}, nil, adapters.KindCapacity},
		{"another pool is closed", []adapters.Kind{adapters.KindRateLimited}, []Considered{open}, adapters.KindCapacity},
		{"outage", []adapters.Kind{adapters.KindUnavailable, adapters.KindCredentials}, nil, adapters.KindUnavailable},
		{"absence was proved", []adapters.Kind{adapters.KindUnknownOutcome}, nil, adapters.KindUnavailable},
		{"credentials", []adapters.Kind{adapters.KindCredentials}, nil, adapters.KindCredentials},
		{"nobody can", []adapters.Kind{adapters.KindUnsupported, adapters.KindNotFound}, []Considered{never}, adapters.KindUnsupported},
		{"the template is gone", []adapters.Kind{adapters.KindNotFound}, nil, adapters.KindNotFound},
		{"fell short", []adapters.Kind{FailedPostCheck}, nil, adapters.KindCapacity},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := Decision{Candidates: c.others}
			for _, kind := range c.attempts {
				a := Attempt{Pool: "a", Provider: "a", Kind: kind, Message: "no luck"}
				if kind == adapters.KindRateLimited {
					a.RetryAfter = Milliseconds(7 * time.Second)
				}
				d.Attempts = append(d.Attempts, a)
			}
			err := d.Exhausted()
			var known *adapters.Error
			require.True(t, errors.As(err, &known))
			require.Equal(t, c.kind, known.Kind)
			require.Equal(t, CodeNoEligibleProvider, known.Code)
			require.Equal(t, c.kind == adapters.KindRateLimited, known.RetryAfter == 7*time.Second)
			require.Contains(t, err.Error(), "a")
		})
	}
}

func TestTheRecordIsJSON(t *testing.T) {
	plan, err := Decide(asks(t, "rank=cost; isolation=process; near=eu"), append(threePools(), offer("d", pool(func(p *Pool) { p.Draining = true }))), noon(), Settings{})
	require.NoError(t, err)
	plan.Decision.Attempts = []Attempt{{Pool: "B", Kind: adapters.KindCapacity, Next: Next, Began: noon()}}
	plan.Decision.Stages = []Stage{{Name: StageMatch, Began: noon(), Ended: noon()}}
	text, err := json.Marshal(plan.Decision)
	require.NoError(t, err)
	var read Decision
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, plan.Decision, read)
	require.Equal(t, []string{"B", "C", "A"}, poolNames(plan))
	require.Equal(t, []Unmet{{Requirement: UnmetDraining, Has: "no new sandboxes", Passing: true}}, read.Candidates[3].Unmet)
	require.Equal(t, "provider_reported", read.Candidates[0].Evidence)
}

func TestShortfall(t *testing.T) {
	r := asks(t, "cpu=4; memory=4GiB; isolation=vm; region=eu").Require
	choice := Choice{Need: &r, Region: "fra1"}
	cases := []struct {
		measured Measured
		unmet    []string
	}{
		{Measured{}, []string{}},
		{Measured{Resources: adapters.Resources{CPU: 4, MemoryMB: 3900, DiskMB: 1}, Isolation: "microvm", Region: "fra1"}, []string{}},
		{Measured{Resources: adapters.Resources{CPU: 2, MemoryMB: 2048}, Isolation: "gvisor", Region: "iad1"}, []string{"cpu", "memory", "isolation", "region"}},
		{Measured{Isolation: IsolationUnknown, Region: "eu-west-1"}, []string{}},
	}
	for _, c := range cases {
		require.Equal(t, c.unmet, unmetNames(choice.Shortfall(c.measured)))
	}
}
