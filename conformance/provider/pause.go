package provider

import (
	"strings"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// pauses reports whether the place can pause at a level.
func (s *Suite) pauses(level adapters.Level) bool {
	if s.powers.Pauser == nil {
		return false
	}
	has := s.can.Value(adapters.FeaturePause)
	return has == string(adapters.LevelMemory) || has == string(level)
}

func pausesFiles(s *Suite) bool  { return s.pauses(adapters.LevelFilesystem) }
func pausesMemory(s *Suite) bool { return s.pauses(adapters.LevelMemory) }

// pause stops a box and looks that it is seen to be stopped.
func (s *Suite) pause(t T, spec adapters.Spec, level adapters.Level) {
	t.Helper()
	must(t, s.powers.Pauser.Pause(t.Context(), spec.BoxID, level), "pause")
	s.isPaused(t, spec)
}

func (s *Suite) isPaused(t T, spec adapters.Spec) {
	t.Helper()
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "get a paused box")
	that(t, box.Paused, "the box is not paused")
	box.Paused = false
	s.same(t, spec, box)
	boxes, err := s.provider.List(t.Context(), spec.Deployment)
	must(t, err, "list")
	for _, box := range boxes {
		that(t, box.ID != spec.BoxID || box.Paused && box.Alive, "the list has the box as %+v", box)
	}
	_, err = s.provider.Reach(t.Context(), spec.BoxID)
	refused(t, adapters.KindPrecondition, err, "reach of a paused box")
}

// resume brings a box back, with an hour to live.
func (s *Suite) resume(t T, spec adapters.Spec) {
	t.Helper()
	spec.Envd.Deadline = time.Now().Add(time.Hour)
	box, err := s.powers.Pauser.Resume(t.Context(), spec)
	must(t, err, "resume")
	that(t, !box.Paused, "a resumed box is paused")
	s.same(t, spec, box)
	box, err = s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "get a resumed box")
	that(t, !box.Paused, "a resumed box is seen as paused")
}

// pauseFiles follows a box through a pause that keeps its files, past its deadline.
func pauseFiles(t T, s *Suite) {
	spec, done := s.create(t, func(spec *adapters.Spec) { spec.Envd.Deadline = time.Now().Add(2 * time.Minute) })
	defer done()
	kept := s.harness.Kept + "/conformance"
	s.runs(t, spec.BoxID, "mkdir -p "+s.harness.Kept+" && echo kept >"+kept, result{})
	s.pause(t, spec, adapters.LevelFilesystem)
	must(t, s.powers.Pauser.Pause(t.Context(), spec.BoxID, adapters.LevelFilesystem), "pause again")
	s.resume(t, spec)
	s.runs(t, spec.BoxID, "cat "+kept+"; echo $CONFORMANCE", result{Stdout: "kept\n" + spec.BoxID + "\n"})
	s.resume(t, spec)
	s.runs(t, spec.BoxID, "echo more >>"+kept, result{})
	s.pause(t, spec, adapters.LevelFilesystem)
	s.resume(t, spec)
	s.runs(t, spec.BoxID, "cat "+kept, result{Stdout: "kept\nmore\n"})
}

// pauseMemory looks that programs go on where they were.
func pauseMemory(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	s.runs(t, spec.BoxID, "sleep 3600 >/dev/null 2>&1 & echo $! >/tmp/conformance", result{})
	s.pause(t, spec, adapters.LevelMemory)
	s.resume(t, spec)
	s.runs(t, spec.BoxID, `kill -0 "$(cat /tmp/conformance)" && echo $CONFORMANCE`, result{Stdout: spec.BoxID + "\n"})
}

// pauseTooMuch asks for memory where only files can be kept: the box goes on as if nothing was asked.
func pauseTooMuch(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	refused(t, adapters.KindUnsupported, s.powers.Pauser.Pause(t.Context(), spec.BoxID, adapters.LevelMemory), "pause with memory")
	s.runs(t, spec.BoxID, "echo on", result{Stdout: "on\n"})
}

// pausedPast keeps a box paused past its own deadline, which must not end it, and ends it at the one that the resume
// brought.
func pausedPast(t T, s *Suite) {
	short := 2 * s.harness.Soon
	for _, level := range []adapters.Level{adapters.LevelFilesystem, adapters.LevelMemory} {
		if !s.pauses(level) {
			continue
		}
		spec, done := s.create(t, func(spec *adapters.Spec) { spec.Envd.Deadline = time.Now().Add(short) })
		if err := s.powers.Pauser.Pause(t.Context(), spec.BoxID, level); err != nil {
			t.Errorf("pause: %v", err)
			done()
			continue
		}
		passed := spec.Envd.Deadline.Add(time.Second)
		eventually(t, 2*short, func() bool { return time.Now().After(passed) }, "the deadline passes")
		s.isPaused(t, spec)
		spec.Envd.Deadline = time.Now().Add(short)
		_, err := s.powers.Pauser.Resume(t.Context(), spec)
		must(t, err, "resume after the deadline")
		eventually(t, short+s.harness.Patience, func() bool { return s.over(t, spec.BoxID) }, "the box ends at the deadline of its resume")
		done()
	}
}

// pauseUnseen looks that a pause is not told as an end, and that the end is told after a resume.
func pauseUnseen(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	before, err := s.powers.Watcher.Ended(spec.BoxID)
	must(t, err, "ended")
	s.pause(t, spec, adapters.LevelFilesystem)
	s.resume(t, spec)
	select {
	case <-before:
		t.Errorf("a box that was paused is said to have ended")
	default:
	}
	after, err := s.powers.Watcher.Ended(spec.BoxID)
	must(t, err, "ended")
	s.destroy(t, spec.BoxID)
	select {
	case <-after:
	case <-time.After(s.harness.Patience):
		t.Errorf("nobody says that the box has ended after its resume")
	}
}

// pausedEnds removes paused boxes, also while they are being paused.
func pausedEnds(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	s.pause(t, spec, adapters.LevelFilesystem)
	s.destroy(t, spec.BoxID)
	s.absent(t, spec)
	_, err := s.powers.Pauser.Resume(t.Context(), spec)
	refused(t, adapters.KindNotFound, err, "resume of a box that is gone")

	raced, done := s.create(t)
	defer done()
	var both sync.WaitGroup
	both.Go(func() { _ = s.powers.Pauser.Pause(t.Context(), raced.BoxID, adapters.LevelFilesystem) }) // it may come too late
	both.Go(func() { s.destroy(t, raced.BoxID) })
	both.Wait()
	s.destroy(t, raced.BoxID)
	s.absent(t, raced)
}

// pauseRestart stops the adapter while a box is paused: another one resumes it.
func pauseRestart(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	kept := s.harness.Kept + "/conformance"
	s.runs(t, spec.BoxID, "mkdir -p "+s.harness.Kept+" && echo kept >"+kept, result{})
	s.pause(t, spec, adapters.LevelFilesystem)
	must(t, s.halt(), "stop the adapter")
	again, err := s.harness.Reopen()
	must(t, err, "open the adapter again")
	s.start(again)
	s.isPaused(t, spec)
	s.resume(t, spec)
	s.runs(t, spec.BoxID, "cat "+kept, result{Stdout: "kept\n"})
}

// pauseCases are those of the power Pauser.
func pauseCases() []Case {
	exec := []adapters.Feature{adapters.FeatureExec}
	deadlines := []adapters.Feature{adapters.FeatureDeadline}
	return []Case{
		{Name: "pause and resume of files", Run: pauseFiles, needs: exec, when: pausesFiles},
		{Name: "pause and resume of memory", Run: pauseMemory, needs: exec, when: pausesMemory},
		{Name: "more than it keeps", Run: pauseTooMuch, needs: exec, when: func(s *Suite) bool { return pausesFiles(s) && !pausesMemory(s) }},
		{Name: "paused past the deadline", Run: pausedPast, needs: deadlines, when: pausesFiles},
		{Name: "a pause is no end", Run: pauseUnseen, needs: []adapters.Feature{adapters.FeatureEndSeen}, when: pausesFiles},
		{Name: "the end of a paused box", Run: pausedEnds, when: pausesFiles},
		{Name: "a restart while paused", Run: pauseRestart, needs: exec, when: func(s *Suite) bool { return pausesFiles(s) && s.harness.Reopen != nil }},
		{Name: "what it says of pauses", Run: saysPauses},
	}
}

// saysPauses holds what is declared against the powers that are there.
func saysPauses(t T, s *Suite) {
	equal(t, s.powers.Pauser != nil, s.can.Has(adapters.FeaturePause), "pause is declared, and there")
	equal(t, s.powers.Snapshotter != nil, s.can.Has(adapters.FeatureSnapshot), "snapshot is declared, and there")
	equal(t, s.powers.Networker != nil, s.can.Has(adapters.FeatureLiveNetwork), "live_network is declared, and there")
	levels := []string{string(adapters.LevelFilesystem), string(adapters.LevelMemory)}
	for _, feature := range []adapters.Feature{adapters.FeaturePause, adapters.FeatureSnapshot} {
		value := s.can.Value(feature)
		that(t, !s.can.Has(feature) || strings.Contains(strings.Join(levels, " "), value), "%s is %q", feature, value)
	}
}
