package provider

import (
	"fmt"

	"github.com/isthmus/isthmus/adapters"
)

// EchoedHeader is the header whose value the servers of an Outside answer with.
const EchoedHeader = "X-Conformance"

// injects reports whether the place puts headers into requests, and there is an outside that says which it got.
func injects(s *Suite) bool {
	return restricts(adapters.FeatureInjectHeaders)(s) && s.harness.Outside.FirstName != "" && len(s.named()) > 0
}

// adding are the rules of a network that put a value into the header for the first server.
func (o *Outside) adding(value string) []adapters.HeaderRule {
	return []adapters.HeaderRule{{Host: o.FirstName, Headers: map[string]string{EchoedHeader: value}}}
}

// hears fails the case unless a server got a value of the header from a program that did not send it. Without one a
// connection is the server's own, whose certificate the box need not know.
func (s *Suite) hears(t T, id, address, value string) {
	t.Helper()
	in := s.reach(t, id)
	defer in.close()
	command := "curl -s -m 20 " + address
	if value == "" {
		command += " --insecure"
	}
	var got result
	eventually(t, 2*s.harness.Patience, func() bool {
		var err error
		got, err = in.sh(t.Context(), command)
		must(t, err, "run curl")
		return got.Code == 0
	}, "the box reaches "+address)
	equal(t, result{Stdout: value}, got, "what "+address+" heard")
}

// everywhere reports whether headers are put into all requests, and not over TLS alone.
func (s *Suite) everywhere() bool { return s.can.Value(adapters.FeatureInjectHeaders) == adapters.Yes }

// named are the addresses of the first server by its name, where headers are put into requests.
func (s *Suite) named() (addresses []string) {
	o := s.harness.Outside
	if s.everywhere() {
		addresses = append(addresses, url(o.FirstName, o.First.Port()))
	}
	if o.Secure.IsValid() {
		addresses = append(addresses, fmt.Sprintf("https://%s:%d/", o.FirstName, o.Secure.Port()))
	}
	return addresses
}

// injectHeaders has requests to one host carry a header that nothing in the box knows, over TLS too.
func injectHeaders(t T, s *Suite) {
	o, secret := s.harness.Outside, newID()+"$HOME"
	networks := []adapters.Network{{Internet: true, Rules: o.adding(secret)}}
	if s.everywhere() {
		networks = append(networks, adapters.Network{AllowOut: []string{o.FirstName}, Rules: o.adding(secret)})
	}
	for _, network := range networks {
		spec, done := s.create(t, within(network))
		for _, address := range s.named() {
			s.hears(t, spec.BoxID, address, secret)
		}
		if network.Internet {
			s.hears(t, spec.BoxID, url(o.SecondName, o.Second.Port()), "")
			s.hears(t, spec.BoxID, o.first(), "") // it is no name
		}
		done()
	}
}

// changeHeaders replaces the headers of a box that runs.
func changeHeaders(t T, s *Suite) {
	o, secret := s.harness.Outside, newID()
	before, network := "", adapters.Network{Internet: true}
	if !s.everywhere() {
		before, network.Rules = secret, o.adding(secret)
	}
	spec, done := s.create(t, within(network))
	defer done()
	first := s.named()[0]
	s.hears(t, spec.BoxID, first, before)
	for _, value := range []string{secret, newID(), ""} {
		network := adapters.Network{Internet: true}
		if value != "" {
			network.Rules = o.adding(value)
		}
		must(t, s.powers.Networker.SetNetwork(t.Context(), spec.BoxID, network), "change the network")
		s.hears(t, spec.BoxID, first, value)
	}
}

// headerCases are those of headers that are put into requests.
func headerCases() []Case {
	exec := []adapters.Feature{adapters.FeatureExec}
	return []Case{
		{Name: "headers of requests", Run: injectHeaders, needs: exec, when: injects},
		{Name: "a live change of headers", Run: changeHeaders, needs: exec, when: func(s *Suite) bool {
			return injects(s) && s.can.Has(adapters.FeatureLiveNetwork)
		}},
	}
}
