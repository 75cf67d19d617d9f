package provider

import (
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// description checks what is said without any box.
func description(t T, s *Suite) {
	d := s.provider.Describe()
	that(t, d.Provider != "", "the provider has no name")
	levels := []string{"process", "container", "gvisor", "vm", "microvm", "unknown"}
	that(t, slices.Contains(levels, d.Isolation), "%q is no isolation", d.Isolation)
	equal(t, d, s.provider.Describe(), "it says something else the second time")
	for _, c := range s.can.List() {
		known := c.Evidence == adapters.Declared || c.Evidence == adapters.Verified
		that(t, known && c.Source != "" && c.Value != "", "a capability without a value, a source or evidence: %+v", c)
	}
	again, err := s.provider.Resolve(t.Context(), s.template.ID)
	must(t, err, "find the template by its id")
	equal(t, s.template, again, "the template by its id")
}

// life follows one box from its create to its end.
func life(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "get")
	s.same(t, spec, box)
	boxes, err := s.provider.List(t.Context(), spec.Deployment)
	must(t, err, "list")
	at := slices.IndexFunc(boxes, func(b adapters.Box) bool { return b.ID == spec.BoxID })
	if at < 0 {
		t.Errorf("the list has no such box: %+v", boxes)
		t.FailNow()
	}
	s.same(t, spec, boxes[at])

	in := s.reach(t, spec.BoxID)
	defer in.close()
	status, err := in.health(t.Context())
	must(t, err, "ask envd for its health")
	equal(t, 204, status, "health")
	s.runs(t, spec.BoxID, "echo out; echo err >&2; echo $CONFORMANCE; exit 3", result{Code: 3, Stdout: "out\n" + spec.BoxID + "\n", Stderr: "err\n"})

	s.destroy(t, spec.BoxID)
	s.absent(t, spec)
	_, err = s.provider.Reach(t.Context(), spec.BoxID)
	refused(t, adapters.KindNotFound, err, "reach of a box that is gone")
	s.destroy(t, spec.BoxID)
	if status, err := in.health(t.Context()); err == nil && status/100 == 2 {
		t.Errorf("the envd of a box that is gone answers")
	}
}

// exists creates one id twice.
func exists(t T, s *Suite) {
	spec, done := s.create(t)
	defer done()
	second := spec
	second.Attempt = "another-attempt"
	_, err := s.provider.Create(t.Context(), second)
	refused(t, adapters.KindExists, err, "a second create")
	box, err := s.provider.Get(t.Context(), spec.BoxID)
	must(t, err, "get")
	s.same(t, spec, box)
	s.runs(t, spec.BoxID, "echo here", result{Stdout: "here\n"})
}

// unknownTemplate asks for a template that is not there.
func unknownTemplate(t T, s *Suite) {
	_, err := s.provider.Resolve(t.Context(), "no-such-template")
	refused(t, adapters.KindNotFound, err, "resolve")
	spec := s.spec(func(spec *adapters.Spec) {
		spec.Template = adapters.Template{ID: "nosuchtemplate000000", Name: "no-such-template"}
	})
	_, err = s.provider.Create(t.Context(), spec)
	refused(t, adapters.KindNotFound, err, "create")
	s.absent(t, spec)
}

// tooLarge asks for more than the provider says that it has.
func tooLarge(t T, s *Suite) {
	most := s.provider.Describe().Max
	for _, one := range []struct {
		name string
		most int
		set  func(*adapters.Resources, int)
	}{
		{"cpu", most.CPU, func(r *adapters.Resources, n int) { r.CPU = n }},
		{"memory", most.MemoryMB, func(r *adapters.Resources, n int) { r.MemoryMB = n }},
		{"disk", most.DiskMB, func(r *adapters.Resources, n int) { r.DiskMB = n }},
	} {
		if one.most == 0 {
			continue // it names no bound
		}
		spec := s.spec(func(spec *adapters.Spec) { one.set(&spec.Resources, one.most+1) })
		_, err := s.provider.Create(t.Context(), spec)
		refused(t, adapters.KindUnsupported, err, "more "+one.name+" than there is")
		s.absent(t, spec)
	}
}

// strangers asks for boxes that were never there, by ids that mean harm.
func strangers(t T, s *Suite) {
	for _, id := range []string{newID(), "../../etc", "a b", ""} {
		_, err := s.provider.Get(t.Context(), id)
		refused(t, adapters.KindNotFound, err, "get "+id)
		_, err = s.provider.Reach(t.Context(), id)
		refused(t, adapters.KindNotFound, err, "reach "+id)
		must(t, s.provider.Destroy(t.Context(), id), "destroy "+id)
		s.strangerPowers(t, id)
	}
}

func (s *Suite) strangerPowers(t T, id string) {
	if s.powers.Extender != nil {
		refused(t, adapters.KindNotFound, s.powers.Extender.Extend(t.Context(), id, s.spec().Envd.Deadline), "extend "+id)
	}
	if s.powers.Meter != nil {
		_, err := s.powers.Meter.Measure(t.Context(), id)
		refused(t, adapters.KindNotFound, err, "measure "+id)
	}
	if s.powers.Journal != nil {
		_, err := s.powers.Journal.Entries(t.Context(), id, 0)
		refused(t, adapters.KindNotFound, err, "entries "+id)
	}
	if s.powers.Watcher != nil {
		_, err := s.powers.Watcher.Ended(id)
		refused(t, adapters.KindNotFound, err, "ended "+id)
	}
	if s.powers.Bootable != nil {
		_, err := s.powers.Bootable.Exec(t.Context(), id, []string{"/bin/true"})
		refused(t, adapters.KindNotFound, err, "exec "+id)
	}
	if s.powers.Native != nil {
		_, err := s.powers.Native.Native(t.Context(), id)
		refused(t, adapters.KindNotFound, err, "native "+id)
	}
	unknown := s.spec()
	unknown.BoxID = id
	if s.powers.Pauser != nil {
		refused(t, adapters.KindNotFound, s.powers.Pauser.Pause(t.Context(), id, adapters.LevelFilesystem), "pause "+id)
		_, err := s.powers.Pauser.Resume(t.Context(), unknown)
		refused(t, adapters.KindNotFound, err, "resume "+id)
	}
	if s.powers.Snapshotter != nil {
		_, err := s.powers.Snapshotter.Snapshot(t.Context(), unknown, newID())
		refused(t, adapters.KindNotFound, err, "snapshot "+id)
	}
	if s.powers.Networker != nil {
		refused(t, adapters.KindNotFound, s.powers.Networker.SetNetwork(t.Context(), id, adapters.Network{Internet: true}), "change the network of "+id)
	}
}

// deployments keeps the boxes of two facades on one account apart.
func deployments(t T, s *Suite) {
	mine, done := s.create(t)
	defer done()
	theirs, done := s.create(t, func(spec *adapters.Spec) { spec.Deployment = newID()[:16] })
	defer done()
	for label, want := range map[string]string{mine.Deployment: mine.BoxID, theirs.Deployment: theirs.BoxID} {
		boxes, err := s.provider.List(t.Context(), label)
		must(t, err, "list")
		for _, box := range boxes {
			equal(t, label, box.Deployment, "the label of a listed box")
		}
		that(t, slices.ContainsFunc(boxes, func(b adapters.Box) bool { return b.ID == want }), "the list of %s lacks %s", label, want)
	}
	boxes, err := s.provider.List(t.Context(), newID()[:16])
	must(t, err, "list")
	equal(t, 0, len(boxes), "boxes of nobody")
}
