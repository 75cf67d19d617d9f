package provider

import (
	"context"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Strange is one way in which a provider's answers drift, and a call that meets it.
type Strange struct {
	// Name is a few words.
	Name string
	// Spoil has the provider answer so until heal is called. stop ends the context of the call that meets it: for calls
	// that would wait for an answer which makes sense.
	Spoil func(stop context.CancelFunc) (heal func())
	// Call makes the call. It must go well when it is made again and the answers are as before.
	Call func(ctx context.Context, p *adapters.Watched) error
	// Kind is how it fails, Operation the call of the contract, and Feature the capability in doubt.
	Kind      adapters.Kind
	Operation string
	Feature   adapters.Feature
}

// Drift holds an adapter against answers that it cannot understand: each fails its call with the contract's error that
// says so, and marks the capability until an answer is understood again.
func Drift(t T, p *adapters.Watched, all []Strange) {
	t.Helper()
	for _, one := range all {
		t.Logf("drift: %s", one.Name)
		ctx, stop := context.WithCancel(t.Context())
		heal := one.Spoil(stop)
		err := one.Call(ctx, p)
		heal()
		stop()
		refused(t, one.Kind, err, one.Name)
		one.marked(t, p, err)
		must(t, one.Call(t.Context(), p), one.Name+", when the answers are as before")
		mark := one.mark(p)
		that(t, !mark.Drifted && !mark.Understood.IsZero() && !mark.Last.IsZero(), "%s: the mark is not taken off: %+v", one.Name, mark)
	}
}

// marked looks at the error and at the mark.
func (s Strange) marked(t T, p *adapters.Watched, err error) {
	t.Helper()
	misread := adapters.MisreadOf(err)
	if misread == nil {
		t.Errorf("%s: the error does not say that an answer was not understood: %v", s.Name, err)
		t.FailNow()
	}
	equal(t, s.Feature, misread.Feature, s.Name+": the capability of the error")
	that(t, strings.Contains(err.Error(), "is not understood since"), "%s: the message does not say since when: %v", s.Name, err)
	mark := s.mark(p)
	that(t, mark.Drifted && mark.Times >= 1 && !mark.First.IsZero() && mark.Understood.IsZero(), "%s: the mark is %+v, of %+v", s.Name, mark, p.Drifts())
	that(t, mark.Declared != "" && mark.Reason != "" && len(mark.Reason) <= 300, "%s: the mark says %q, declared %q", s.Name, mark.Reason, mark.Declared)
}

// mark is the one of the operation and the capability; an empty one when there is none.
func (s Strange) mark(p *adapters.Watched) adapters.Drift {
	all := p.Drifts()
	at := slices.IndexFunc(all, func(d adapters.Drift) bool { return d.Operation == s.Operation && d.Feature == s.Feature })
	if at < 0 {
		return adapters.Drift{}
	}
	return all[at]
}
