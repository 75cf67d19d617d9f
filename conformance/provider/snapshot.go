package provider

import (
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// snapshotted is a box that was copied, and the copy.
type snapshotted struct {
	spec adapters.Spec
	file string
	copy adapters.Snapshot
}

// snapshot makes a box with a file and copies it.
func (s *Suite) snapshot(t T) (snapshotted, func()) {
	t.Helper()
	spec, done := s.create(t)
	one := snapshotted{spec: spec, file: s.harness.Kept + "/conformance"}
	s.runs(t, spec.BoxID, "mkdir -p "+s.harness.Kept+" && echo first >"+one.file, result{})
	made, err := s.powers.Snapshotter.Snapshot(t.Context(), spec, newID())
	if err != nil {
		done()
	}
	must(t, err, "snapshot")
	one.copy = made
	return one, func() {
		done()
		must(t, s.powers.Snapshotter.Forget(t.Context(), made), "forget")
	}
}

// of is the template by which boxes are made of the copy.
func (one snapshotted) of(spec *adapters.Spec) {
	spec.Template = adapters.Template{ID: newID()[:20], Name: "copied", Resources: spec.Resources, Snapshot: one.copy.Ref}
	spec.Envd.TemplateID = spec.Template.ID
}

// listed reports whether the place lists a copy under a label.
func (s *Suite) listed(t T, deployment string, snapshot adapters.Snapshot) bool {
	t.Helper()
	list, err := s.powers.Snapshotter.Snapshots(t.Context(), deployment)
	must(t, err, "list the copies")
	at := slices.IndexFunc(list, func(one adapters.Snapshot) bool { return one.Ref == snapshot.Ref })
	if at >= 0 {
		equal(t, snapshot.Name, list[at].Name, "the name of a listed copy")
		equal(t, deployment, list[at].Deployment, "the label of a listed copy")
		that(t, list[at].Ready, "a listed copy that was made is not ready: %+v", list[at])
	}
	return at >= 0
}

// snapshots copies a box: it runs on, and boxes that are made of the copy have its files and lives of their own.
func snapshots(t T, s *Suite) {
	one, done := s.snapshot(t)
	defer done()
	that(t, one.copy.Ref != "" && one.copy.Ready && !one.copy.CreatedAt.IsZero(), "the copy is %+v", one.copy)
	equal(t, s.can.Value(adapters.FeatureSnapshot), string(one.copy.Level), "the level of the copy")
	box, err := s.provider.Get(t.Context(), one.spec.BoxID)
	must(t, err, "get a box that was copied")
	s.same(t, one.spec, box)
	s.runs(t, one.spec.BoxID, "cat "+one.file+"; echo $CONFORMANCE; echo later >"+one.file,
		result{Stdout: "first\n" + one.spec.BoxID + "\n"})

	again, err := s.powers.Snapshotter.Snapshot(t.Context(), one.spec, one.copy.Name)
	must(t, err, "a second snapshot of one name")
	equal(t, one.copy.Ref, again.Ref, "a second snapshot of one name")
	that(t, s.listed(t, one.spec.Deployment, one.copy), "the copy is not listed")
	that(t, !s.listed(t, newID()[:16], one.copy), "the copy is listed for another deployment")

	first, end := s.create(t, one.of)
	s.runs(t, first.BoxID, "cat "+one.file+"; echo $CONFORMANCE; echo mine >"+one.file, result{Stdout: "first\n" + first.BoxID + "\n"})
	end()
	second, end := s.create(t, one.of)
	s.runs(t, second.BoxID, "cat "+one.file, result{Stdout: "first\n"})
	end()
	s.runs(t, one.spec.BoxID, "cat "+one.file, result{Stdout: "later\n"})
}

// snapshotOutlives makes a box of a copy whose own box is gone, and forgets the copy.
func snapshotOutlives(t T, s *Suite) {
	one, done := s.snapshot(t)
	defer done()
	s.destroy(t, one.spec.BoxID)
	that(t, s.listed(t, one.spec.Deployment, one.copy), "the copy went with its box")
	spec, end := s.create(t, one.of)
	s.runs(t, spec.BoxID, "cat "+one.file, result{Stdout: "first\n"})
	if err := s.powers.Snapshotter.Forget(t.Context(), one.copy); err != nil {
		refused(t, adapters.KindPrecondition, err, "forget a copy that is in use")
	}
	end()
	for range 2 {
		must(t, s.powers.Snapshotter.Forget(t.Context(), one.copy), "forget")
	}
	that(t, !s.listed(t, one.spec.Deployment, one.copy), "the copy is listed after it was forgotten")
	gone := s.spec(one.of)
	_, err := s.provider.Create(t.Context(), gone)
	refused(t, adapters.KindNotFound, err, "create of a copy that is gone")
	s.absent(t, gone)
}

// snapshotCases are those of the power Snapshotter.
func snapshotCases() []Case {
	exec := []adapters.Feature{adapters.FeatureExec}
	has := func(s *Suite) bool { return s.powers.Snapshotter != nil }
	return []Case{
		{Name: "a snapshot, and boxes of it", Run: snapshots, needs: exec, when: has},
		{Name: "a snapshot outlives its box", Run: snapshotOutlives, needs: exec, when: has},
	}
}
