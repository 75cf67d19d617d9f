package provider

import (
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// Case is one thing that the suite checks.
type Case struct {
	// Name is a few words.
	Name string
	// Run checks it.
	Run func(t T, s *Suite)
	// needs are the capabilities without which there is nothing to check.
	needs []adapters.Feature
	// when is a further condition; nil: none.
	when func(s *Suite) bool
}

// Cases lists what is checked of this adapter, in the order in which it is run.
func (s *Suite) Cases() []Case {
	var chosen []Case
	for _, c := range slices.Concat(all(), programCases(), pauseCases(), snapshotCases(), networkCases(), headerCases()) {
		if s.serves(c) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func (s *Suite) serves(c Case) bool {
	for _, feature := range c.needs {
		if !s.can.Has(feature) {
			return false
		}
	}
	return c.when == nil || c.when(s)
}

// all lists the cases of what every provider has.
func all() []Case {
	exec := []adapters.Feature{adapters.FeatureExec}
	ours := func(s *Suite) bool { return s.powers.Native == nil }
	return []Case{
		{Name: "what it says of itself", Run: description},
		{Name: "from create to destroy", Run: life, needs: exec},
		{Name: "a second create of one id", Run: exists, needs: exec},
		{Name: "racing creates of one id", Run: race},
		{Name: "an unknown template", Run: unknownTemplate},
		{Name: "more than it has", Run: tooLarge},
		{Name: "boxes that are not there", Run: strangers},
		{Name: "two deployments", Run: deployments},
		{Name: "a lost answer", Run: lostAnswer, needs: exec},
		{Name: "cancelled creates", Run: cancelled},
		{Name: "many at once", Run: many, needs: exec},
		{Name: "racing destroys", Run: racingDestroys},
		{Name: "the deadline", Run: deadline, needs: []adapters.Feature{adapters.FeatureDeadline}},
		{Name: "the deadline is moved", Run: extend, needs: []adapters.Feature{adapters.FeatureDeadline, adapters.FeatureExtend}},
		{Name: "the end is seen", Run: endSeen, needs: []adapters.Feature{adapters.FeatureEndSeen}},
		{Name: "metrics", Run: metrics, needs: []adapters.Feature{adapters.FeatureMetrics}},
		{Name: "the journal", Run: journal, needs: []adapters.Feature{adapters.FeatureExec, adapters.FeatureLogs}, when: ours},
		{Name: "strangers do not get in", Run: guarded, when: ours},
		{Name: "any port", Run: ports, needs: []adapters.Feature{adapters.FeaturePorts}, when: ours},
		{Name: "without the internet", Run: internetOff, needs: []adapters.Feature{adapters.FeatureInternetOff}},
		{Name: "the internet cannot be taken away", Run: internetStays, when: func(s *Suite) bool { return !s.can.Has(adapters.FeatureInternetOff) }},
		{Name: "its kernel", Run: kernel, when: func(s *Suite) bool { return ours(s) && !s.harness.Simulated }},
		{Name: "put and exec", Run: boots, when: func(s *Suite) bool { return s.powers.Bootable != nil }},
		{Name: "its own server", Run: native, when: func(s *Suite) bool { return s.powers.Native != nil }},
		{Name: "a restart of the facade", Run: restart, needs: exec, when: func(s *Suite) bool { return s.harness.Reopen != nil }},
	}
}
