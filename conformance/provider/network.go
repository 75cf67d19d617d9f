package provider

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Outside is what boxes with the internet can reach: two HTTP servers at different addresses that answer any GET
// with 200, and with the value of EchoedHeader. The addresses must be public ones to the place, because private ones are refused whatever is allowed.
type Outside struct {
	First, Second netip.AddrPort
	// FirstName and SecondName are their names, as boxes resolve them; empty: no names are tried.
	FirstName, SecondName string
	// Secure is the first server over TLS, in its name, by a certificate that the place trusts; zero: it has none.
	Secure netip.AddrPort
}

// restricts reports whether the place says that it has a kind of list, and there is an outside to try it on.
func restricts(feature adapters.Feature) func(s *Suite) bool {
	return func(s *Suite) bool {
		return s.harness.Outside != nil && s.keeps(feature)
	}
}

// keeps reports whether the place says that it keeps a kind of rule; where it says nothing of a kind of list, what it
// says of lists decides.
func (s *Suite) keeps(feature adapters.Feature) bool {
	lists := []adapters.Feature{adapters.FeatureAllowCIDRs, adapters.FeatureDenyCIDRs, adapters.FeatureAllowDomains}
	if _, stated := s.can[feature]; !stated && slices.Contains(lists, feature) {
		feature = adapters.FeatureEgressLists
	}
	return s.can.Has(feature)
}

func url(host string, port uint16) string { return fmt.Sprintf("http://%s:%d/", host, port) }

func (o *Outside) first() string  { return url(o.First.Addr().String(), o.First.Port()) }
func (o *Outside) second() string { return url(o.Second.Addr().String(), o.Second.Port()) }

func only(address netip.AddrPort) string {
	return netip.PrefixFrom(address.Addr(), address.Addr().BitLen()).String()
}

// fetches reports whether the box gets an answer.
func (s *Suite) fetches(t T, id, address string) bool {
	t.Helper()
	in := s.reach(t, id)
	defer in.close()
	got, err := in.sh(t.Context(), "curl -s -o /dev/null -m 5 "+address)
	must(t, err, "run curl")
	that(t, got.Code != 127, "there is no curl in the box: %s", got.Stderr)
	return got.Code == 0
}

// reaches waits until the box gets an answer: a busy machine may take its time.
func (s *Suite) reaches(t T, id, address string) {
	t.Helper()
	eventually(t, 2*s.harness.Patience, func() bool { return s.fetches(t, id, address) }, "the box reaches "+address)
}

// cannot fails the case when the box gets an answer.
func (s *Suite) cannot(t T, id, address string) {
	t.Helper()
	that(t, !s.fetches(t, id, address), "the box reaches %s", address)
}

func within(network adapters.Network) func(*adapters.Spec) {
	return func(spec *adapters.Spec) { spec.Network = network }
}

// blockAll takes everything away.
func blockAll(t T, s *Suite) {
	open, done := s.create(t)
	defer done()
	s.reaches(t, open.BoxID, s.harness.Outside.first())
	spec, done := s.create(t, within(adapters.Network{}))
	defer done()
	s.cannot(t, spec.BoxID, s.harness.Outside.first())
	s.cannot(t, spec.BoxID, s.harness.Outside.second())
}

// allowAddresses lets one address be reached and no other.
func allowAddresses(t T, s *Suite) {
	o := s.harness.Outside
	spec, done := s.create(t, within(adapters.Network{AllowOut: []string{only(o.First)}}))
	defer done()
	s.reaches(t, spec.BoxID, o.first())
	s.cannot(t, spec.BoxID, o.second())
}

// denyAddresses takes one address away, and looks that what is allowed wins.
func denyAddresses(t T, s *Suite) {
	o := s.harness.Outside
	spec, done := s.create(t, within(adapters.Network{Internet: true, DenyOut: []string{only(o.Second)}}))
	defer done()
	s.reaches(t, spec.BoxID, o.first())
	s.cannot(t, spec.BoxID, o.second())
	if !restricts(adapters.FeatureAllowCIDRs)(s) {
		return
	}
	both, done := s.create(t, within(adapters.Network{
		Internet: true, DenyOut: []string{only(o.First), only(o.Second)}, AllowOut: []string{o.Second.Addr().String()},
	}))
	defer done()
	s.reaches(t, both.BoxID, o.second())
	s.cannot(t, both.BoxID, o.first())
}

// allowNames lets one name be reached and no other.
func allowNames(t T, s *Suite) {
	o := s.harness.Outside
	first, second := url(o.FirstName, o.First.Port()), url(o.SecondName, o.Second.Port())
	spec, done := s.create(t, within(adapters.Network{AllowOut: []string{o.FirstName}}))
	defer done()
	s.reaches(t, spec.BoxID, first)
	s.cannot(t, spec.BoxID, second)
	s.cannot(t, spec.BoxID, o.second())
	s.allowAnyName(t, first, second)
	_, parent, dotted := strings.Cut(o.FirstName, ".")
	if !dotted || strings.HasSuffix(o.SecondName, "."+parent) {
		return // a pattern would take the other one in
	}
	wide, done := s.create(t, within(adapters.Network{AllowOut: []string{"*." + parent}}))
	defer done()
	s.reaches(t, wide.BoxID, first)
	s.cannot(t, wide.BoxID, second)
}

// allowAnyName lets every name be reached and no address without one, where the place can say so.
func (s *Suite) allowAnyName(t T, first, second string) {
	spec := s.spec(within(adapters.Network{AllowOut: []string{"*"}}))
	_, err := s.provider.Create(t.Context(), spec)
	if adapters.KindOf(err) == adapters.KindUnsupported {
		return
	}
	must(t, err, "create with any name allowed")
	defer s.destroy(t, spec.BoxID)
	s.cannot(t, spec.BoxID, s.harness.Outside.second())
	s.reaches(t, spec.BoxID, first)
	s.reaches(t, spec.BoxID, second)
}

// liveNetwork changes the rules of a box that runs.
func liveNetwork(t T, s *Suite) {
	o := s.harness.Outside
	spec, done := s.create(t)
	defer done()
	change := func(network adapters.Network) {
		t.Helper()
		for range 2 {
			must(t, s.powers.Networker.SetNetwork(t.Context(), spec.BoxID, network), "change the network")
		}
	}
	s.reaches(t, spec.BoxID, o.first())
	change(adapters.Network{})
	s.cannot(t, spec.BoxID, o.first())
	change(adapters.Network{Internet: true})
	s.reaches(t, spec.BoxID, o.first())
	if restricts(adapters.FeatureAllowCIDRs)(s) {
		change(adapters.Network{AllowOut: []string{only(o.Second)}})
		s.reaches(t, spec.BoxID, o.second())
		s.cannot(t, spec.BoxID, o.first())
	}
	if restricts(adapters.FeatureDenyCIDRs)(s) {
		change(adapters.Network{Internet: true, DenyOut: []string{only(o.Second)}})
		s.reaches(t, spec.BoxID, o.first())
		s.cannot(t, spec.BoxID, o.second())
	}
}

// refusesLists asks for lists that the place says it cannot keep: it must refuse, and never make an open box.
func refusesLists(t T, s *Suite) {
	for feature, network := range map[adapters.Feature]adapters.Network{
		adapters.FeatureAllowCIDRs:    {AllowOut: []string{"203.0.113.0/24"}},
		adapters.FeatureDenyCIDRs:     {Internet: true, DenyOut: []string{"203.0.113.0/24"}},
		adapters.FeatureAllowDomains:  {AllowOut: []string{"name.example"}},
		adapters.FeatureInjectHeaders: {Internet: true, Rules: []adapters.HeaderRule{{Host: "name.example", Headers: map[string]string{"X-Secret": "s"}}}},
	} {
		if s.keeps(feature) {
			continue
		}
		spec := s.spec(within(network))
		_, err := s.provider.Create(t.Context(), spec)
		refused(t, adapters.KindUnsupported, err, "a box that needs "+string(feature))
		s.absent(t, spec)
	}
}

// networkCases are those of what a box may reach.
func networkCases() []Case {
	exec := []adapters.Feature{adapters.FeatureExec}
	return []Case{
		{Name: "lists that it cannot keep", Run: refusesLists},
		{Name: "everything is blocked", Run: blockAll, needs: exec, when: restricts(adapters.FeatureInternetOff)},
		{Name: "allowed addresses", Run: allowAddresses, needs: exec, when: restricts(adapters.FeatureAllowCIDRs)},
		{Name: "denied addresses", Run: denyAddresses, needs: exec, when: restricts(adapters.FeatureDenyCIDRs)},
		{Name: "allowed names", Run: allowNames, needs: exec, when: func(s *Suite) bool {
			return restricts(adapters.FeatureAllowDomains)(s) && s.harness.Outside.FirstName != ""
		}},
		{Name: "a live change of the network", Run: liveNetwork, needs: exec, when: restricts(adapters.FeatureLiveNetwork)},
	}
}
