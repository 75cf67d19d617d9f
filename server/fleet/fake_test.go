package fleet

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// fake is a provider in memory. It outlives the fleets of a test, as a real one outlives the facade.
type fake struct {
	health *httptest.Server

	mu        sync.Mutex
	boxes     map[string]*fakeBox
	creates   int
	reads     int // of journals
	page      int // entries of one read; 0: 2
	destroys  int
	measured  time.Duration
	noOff     bool
	late      bool                                                // may show a box some time after its create
	before    func(ctx context.Context, spec adapters.Spec) error // before a box is made
	after     func(ctx context.Context, spec adapters.Spec) error // the answer, once it is made
	onDestroy func(id string) error
	onReach   func()
	getErr    error
	getsFail  int // so many looks end with getErr, the others do not; 0: all do
	listErr   error
	silent    bool // does not answer before the caller gives up
	// usage is what the envd of a box tells of its machine; nil: nothing.
	usage func(boxID string) envd.Usage

	capabilities []adapters.Capability
	copies       map[string]adapters.Snapshot // by their names
	networks     map[string]adapters.Network
	onPower      func(call, id string) error // before a pause, resume, snapshot or change of the network
	answer       error                       // of those, once they were done
	resumed      []adapters.Spec
	spoil        func(*adapters.Snapshot) // what is wrong with a copy; nil: nothing
}

type fakeBox struct {
	adapters.Box
	spec     adapters.Spec
	deadline time.Time
	ended    chan struct{}
	journal  []envd.JournalEntry
}

func newFake() *fake {
	p := &fake{boxes: map[string]*fakeBox{}}
	p.health = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != envd.RouteUsage || p.usage == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_ = json.NewEncoder(w).Encode(p.usage(r.Header.Get("Box")))
	}))
	return p
}

func (p *fake) Describe() adapters.Description {
	return adapters.Description{Provider: "fake", InternetOff: !p.noOff, SeenAtOnce: !p.late, Capabilities: p.capabilities}
}

func (p *fake) Resolve(_ context.Context, name string) (adapters.Template, error) {
	if name != "base" && name != "b0000000000000000000" {
		return adapters.Template{}, adapters.Errorf(adapters.KindNotFound, "template %s was not found: there is base", name)
	}
	return adapters.Template{ID: "b0000000000000000000", Name: "base", EnvVars: map[string]string{"A": "template", "B": "template"},
		Resources: adapters.Resources{CPU: 2, MemoryMB: 1024, DiskMB: 10240}}, nil
}

func (p *fake) Create(ctx context.Context, spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	p.creates++
	before, after := p.before, p.after
	p.mu.Unlock()
	if before != nil {
		if err := before(ctx, spec); err != nil {
			return adapters.Box{}, err
		}
	}
	box, err := p.put(spec)
	if err == nil && after != nil {
		err = after(ctx, spec)
	}
	return box, err
}

// silence waits for the end of ctx when the provider does not answer.
func (p *fake) silence(ctx context.Context) error {
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (p *fake) put(spec adapters.Spec) (adapters.Box, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[spec.BoxID] != nil {
		return adapters.Box{}, adapters.Errorf(adapters.KindExists, "box %s is there", spec.BoxID)
	}
	box := &fakeBox{spec: spec, deadline: spec.Envd.Deadline, ended: make(chan struct{}), Box: adapters.Box{
		ID: spec.BoxID, Attempt: spec.Attempt, Deployment: spec.Deployment, SandboxID: spec.Envd.SandboxID,
		CreatedAt: time.Now(), Alive: true}}
	p.boxes[spec.BoxID] = box
	return box.Box, nil
}

func (p *fake) Get(ctx context.Context, id string) (adapters.Box, error) {
	if err := p.silence(ctx); err != nil {
		return adapters.Box{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.getErr; err != nil {
		if p.getsFail--; p.getsFail == 0 {
			p.getErr = nil
		}
		return adapters.Box{}, err
	}
	if box := p.boxes[id]; box != nil {
		return box.Box, nil
	}
	return adapters.Box{}, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
}

func (p *fake) List(ctx context.Context, deployment string) ([]adapters.Box, error) {
	if err := p.silence(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listErr != nil {
		return nil, p.listErr
	}
	var list []adapters.Box
	for _, box := range p.boxes {
		if box.Deployment == deployment {
			list = append(list, box.Box)
		}
	}
	return list, nil
}

func (p *fake) Destroy(ctx context.Context, id string) error {
	if err := p.silence(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.destroys++
	if p.onDestroy != nil {
		if err := p.onDestroy(id); err != nil {
			return err
		}
	}
	if box := p.boxes[id]; box != nil {
		if box.Alive {
			close(box.ended)
		}
		delete(p.boxes, id)
	}
	return nil
}

func (p *fake) Reach(_ context.Context, id string) (adapters.Endpoint, error) {
	p.mu.Lock()
	onReach := p.onReach
	p.mu.Unlock()
	if onReach != nil {
		onReach()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if box := p.boxes[id]; box == nil || !box.Alive {
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	if p.boxes[id].Paused {
		return adapters.Endpoint{}, adapters.Errorf(adapters.KindPrecondition, "box %s is paused", id)
	}
	address, _ := url.Parse(p.health.URL)
	return adapters.Endpoint{URL: address, Header: http.Header{"Box": {id}}, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address.Host)
	}}, nil
}

func (p *fake) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (p *fake) Extend(ctx context.Context, id string, deadline time.Time) error {
	if err := p.silence(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	box := p.boxes[id]
	if box == nil || !box.Alive {
		return adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	box.deadline = deadline
	return nil
}

func (p *fake) Ended(id string) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if box := p.boxes[id]; box != nil {
		return box.ended, nil
	}
	return nil, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
}

func (p *fake) Measure(_ context.Context, id string) (adapters.Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[id] == nil {
		return adapters.Sample{}, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	return adapters.Sample{At: time.Now(), CPUCount: 2, CPUTime: p.measured, MemUsed: 1, MemTotal: 2, DiskUsed: 3, DiskTotal: 4}, nil
}

func (p *fake) Entries(_ context.Context, id string, after uint64) ([]envd.JournalEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	box := p.boxes[id]
	if box == nil {
		return nil, adapters.Errorf(adapters.KindNotFound, "no box %s", id)
	}
	most := p.page
	if most == 0 {
		most = 2 // a small page, so that reading on is tried
	}
	var page []envd.JournalEntry
	for _, entry := range box.journal {
		if entry.Number > after && len(page) < most {
			page = append(page, entry)
		}
	}
	return page, nil
}

// die ends a box as if by itself.
func (p *fake) die(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	box := p.boxes[id]
	box.Alive = false
	close(box.ended)
}

// with changes the provider's behaviour while a fleet uses it.
func (p *fake) with(change func(*fake)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// box returns a copy of a box; nil when there is none.
func (p *fake) box(id string) *fakeBox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if box := p.boxes[id]; box != nil {
		copied := *box
		return &copied
	}
	return nil
}

func (p *fake) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.boxes)
}
