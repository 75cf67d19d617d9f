package daytona

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// snapshotInfo is what is read of a snapshot, which is what sandboxes are made of.
type snapshotInfo struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	State       string    `json:"state"`
	Size        float64   `json:"size"` // GiB
	CPU         int       `json:"cpu"`
	GPU         int       `json:"gpu"`
	Memory      int       `json:"mem"`  // GiB
	Disk        int       `json:"disk"` // GiB
	ErrorReason string    `json:"errorReason"`
	CreatedAt   time.Time `json:"createdAt"`
}

// The states of snapshots that matter here.
const (
	snapshotActive   = "active"
	snapshotInactive = "inactive"
	snapshotError    = "error"
	snapshotFailed   = "build_failed"
)

// heard is what the API said of a snapshot.
type heard struct {
	info snapshotInfo
	err  error
	at   time.Time
}

// The times for which it is believed: that one is there longer than that it is not.
const (
	believedThere  = 10 * time.Minute
	believedAbsent = 15 * time.Second
)

// snapshot describes one by its name. What was said lately is not asked again.
func (p *Provider) snapshot(ctx context.Context, name string) (snapshotInfo, error) {
	p.mu.Lock()
	said, there := p.snapshots[name]
	p.mu.Unlock()
	believed := believedAbsent
	if said.info.State == snapshotActive {
		believed = believedThere
	}
	if there && time.Since(said.at) < believed {
		return said.info, said.err
	}
	info, err := p.askSnapshot(ctx, name)
	if err == nil || adapters.KindOf(err) == adapters.KindNotFound {
		p.mu.Lock()
		p.snapshots[name] = heard{info, err, time.Now()}
		p.mu.Unlock()
	}
	return info, err
}

func (p *Provider) askSnapshot(ctx context.Context, idOrName string) (snapshotInfo, error) {
	var info snapshotInfo
	err := p.api.send(ctx, request{method: http.MethodGet, path: "/snapshots/" + url.PathEscape(idOrName), into: &info})
	if err == nil && (info.ID == "" || info.Name == "" || info.State == "") {
		err = vendor.Unread(adapters.KindUnavailable, nil, "it describes a snapshot without an id, a name or a state")
	}
	return info, err
}

// unlearn has the API asked again.
func (p *Provider) unlearn(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.snapshots, name)
}

// Resolve finds a template by its configured name or id.
func (p *Provider) Resolve(ctx context.Context, name string) (adapters.Template, error) {
	t, err := p.template(name)
	if err != nil {
		return adapters.Template{}, err
	}
	found := adapters.Template{ID: templateID(t.Name), Name: t.Name, Resources: adapters.Resources{
		CPU: cmp.Or(t.Resources.CPU, 1), MemoryMB: cmp.Or(t.Resources.MemoryMB, mib), DiskMB: cmp.Or(t.Resources.DiskMB, 3*mib),
	}}
	if t.Snapshot == "" {
		return found, nil
	}
	said, err := p.snapshot(ctx, t.Snapshot)
	if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
		return adapters.Template{}, adapters.Wrap(adapters.KindNotFound, err, "the template "+t.Name+" of this pool is of the snapshot "+t.Snapshot+", which the organization does not have")
	}
	if err != nil {
		return adapters.Template{}, err
	}
	found.Resources = adapters.Resources{CPU: said.CPU, MemoryMB: said.Memory * mib, DiskMB: said.Disk * mib}
	return found, nil
}

// template finds what is configured.
func (p *Provider) template(nameOrID string) (Template, error) {
	var names []string
	for _, t := range p.config.Templates {
		if nameOrID == t.Name || nameOrID == templateID(t.Name) {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, adapters.Errorf(adapters.KindNotFound, "there is no template %s in this pool: there are %s", nameOrID, strings.Join(names, ", "))
}

// templateID is the id of a configured name; it stays the same.
func templateID(name string) string {
	sum := sha256.Sum256([]byte("daytona template " + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}
