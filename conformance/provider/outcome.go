package provider

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// lostAnswer creates a box, forgets the answer, and finds the box as the fleet does after an unknown outcome:
// by its name, told to be ours by the attempt.
func lostAnswer(t T, s *Suite) {
	spec := s.spec()
	_, err := s.provider.Create(t.Context(), spec)
	must(t, err, "create")
	defer s.destroy(t, spec.BoxID)
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "look the box up")
	s.same(t, spec, box)
	s.runs(t, spec.BoxID, "echo adopted", result{Stdout: "adopted\n"})
}

// cancelled gives creates up at several moments: what they made is found by its name, and can be removed.
func cancelled(t T, s *Suite) {
	started := time.Now()
	_, done := s.create(t)
	took := time.Since(started)
	done()
	for _, share := range []float64{0, 0.1, 0.3, 0.6, 0.9} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(share*float64(took)))
		spec := s.spec()
		_, err := s.provider.Create(ctx, spec)
		cancel()
		s.settle(t, spec, err)
	}
}

// settle does what the fleet does after an error: unless it promises that nothing is left, the box is looked
// up and removed.
func (s *Suite) settle(t T, spec adapters.Spec, err error) {
	t.Helper()
	var typed *adapters.Error
	switch ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded); {
	case err == nil:
	case errors.As(err, &typed) && typed.Kind != adapters.KindUnknownOutcome:
		s.absent(t, spec)
		return
	case typed == nil && !ended:
		t.Errorf("a create that was given up: %T (%v) is neither the contract's error nor that of its context", err, err)
	}
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	if err != nil {
		refused(t, adapters.KindNotFound, err, "look a box up")
	} else {
		equal(t, spec.Attempt, box.Attempt, "the attempt")
	}
	s.destroy(t, spec.BoxID)
	s.absent(t, spec)
}

// race creates one id several times at once: one of them makes the box.
func race(t T, s *Suite) {
	spec := s.spec()
	defer s.destroy(t, spec.BoxID)
	failures := make([]error, s.harness.AtOnce)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() {
			mine := spec
			mine.Attempt = newID()
			_, failures[i] = s.provider.Create(t.Context(), mine)
		})
	}
	all.Wait()
	made := 0
	for _, err := range failures {
		if err == nil {
			made++
			continue
		}
		refused(t, adapters.KindExists, err, "a racing create")
	}
	equal(t, 1, made, "creates that succeeded")
}

// many makes, uses and removes several boxes at once; no one sees what another one does.
func many(t T, s *Suite) {
	var all sync.WaitGroup
	for range s.harness.AtOnce {
		all.Go(func() {
			spec := s.spec()
			if _, err := s.provider.Create(t.Context(), spec); err != nil {
				t.Errorf("create: %v", err)
				return
			}
			defer s.destroy(t, spec.BoxID)
			endpoint, err := s.provider.Reach(t.Context(), spec.BoxID)
			if err != nil || endpoint.URL == nil {
				t.Errorf("reach: %v", err)
				return
			}
			in := s.reach(t, spec.BoxID)
			defer in.close()
			got, err := in.sh(t.Context(), `test ! -e /tmp/conformance && echo "$CONFORMANCE" >/tmp/conformance && cat /tmp/conformance`)
			if want := (result{Stdout: spec.BoxID + "\n"}); err != nil || got != want {
				t.Errorf("one of many: got %+v, %v, want %+v", got, err, want)
			}
		})
	}
	all.Wait()
}

// racingDestroys ends one box several times at once.
func racingDestroys(t T, s *Suite) {
	spec, _ := s.create(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.destroy(t, spec.BoxID) })
	}
	all.Wait()
	s.absent(t, spec)
}
