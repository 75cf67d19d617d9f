package daytona

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// A copy is a snapshot of the organization. Snapshots have no labels, so that the name says whose it is.
const copyPrefix = "isthmus-copy."

// copyNames is the form of the caller's names and of deployments.
var copyNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func copyName(deployment, name string) string { return copyPrefix + deployment + "." + name }

// Snapshot copies the files of a box; it runs on.
func (p *Provider) Snapshot(ctx context.Context, spec adapters.Spec, name string) (adapters.Snapshot, error) {
	if p.config.Class == ClassVM {
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindUnsupported,
			"Daytona copies a virtual machine without its memory only while it is stopped: pause the sandbox instead, or use a pool of containers")
	}
	if !copyNames.MatchString(name) || !copyNames.MatchString(spec.Deployment) {
		return adapters.Snapshot{}, adapters.Errorf(adapters.KindInvalid, "a snapshot's name has 1 to 64 letters and digits")
	}
	found, err := p.present(ctx, spec.BoxID)
	if err != nil {
		return adapters.Snapshot{}, err
	}
	full := copyName(spec.Deployment, name)
	err = p.api.insist(ctx, request{
		method: http.MethodPost, path: sandboxPath(found.ID, "snapshot"), body: map[string]any{"name": full}, makes: true,
	})
	if err != nil && adapters.KindOf(err) != adapters.KindExists {
		return adapters.Snapshot{}, p.lost(spec.BoxID, err)
	}
	made, err := p.untilActive(ctx, full)
	if err == nil {
		_, err = p.until(ctx, found.ID, stateStarted)
	}
	if err != nil {
		return adapters.Snapshot{}, err
	}
	return copied(made), nil
}

// untilActive waits for a snapshot that is being made.
func (p *Provider) untilActive(ctx context.Context, name string) (snapshotInfo, error) {
	var last looked
	for pause := time.Duration(0); ; {
		made, err := p.askSnapshot(ctx, name)
		last.note(ctx, made.State, err)
		switch {
		case err == nil && made.State == snapshotActive:
			return made, nil
		case err == nil && (made.State == snapshotError || made.State == snapshotFailed):
			return made, adapters.Errorf(adapters.KindUnavailable, "Daytona could not make the snapshot: %s", say("", made.State, made.ErrorReason))
		case err != nil && adapters.KindOf(err) != adapters.KindUnavailable && adapters.KindOf(err) != adapters.KindRateLimited:
			return made, err
		}
		if stopped := wait(ctx, &pause); stopped != nil {
			return made, last.givenUp(stopped, snapshotActive, snapshotStates())
		}
	}
}

func copied(info snapshotInfo) adapters.Snapshot {
	deployment, name, _ := strings.Cut(strings.TrimPrefix(info.Name, copyPrefix), ".")
	const gibibyte = 1 << 30
	return adapters.Snapshot{
		Name: name, Ref: info.Name, Deployment: deployment, Level: adapters.LevelFilesystem, CreatedAt: info.CreatedAt,
		Ready: info.State == snapshotActive, SizeBytes: int64(info.Size * gibibyte),
	}
}

// Snapshots returns the copies of a deployment.
func (p *Provider) Snapshots(ctx context.Context, deployment string) ([]adapters.Snapshot, error) {
	var all []adapters.Snapshot
	for number := 1; ; number++ {
		var page struct {
			Items      []snapshotInfo `json:"items"`
			TotalPages int            `json:"totalPages"`
		}
		query := url.Values{"page": {strconv.Itoa(number)}, "limit": {"100"}}
		if err := p.api.send(ctx, request{method: http.MethodGet, path: "/snapshots", query: query, into: &page}); err != nil {
			return nil, unlisted(err)
		}
		if page.Items == nil {
			return nil, vendor.Unread(adapters.KindUnavailable, nil, "it is a list without items")
		}
		for _, one := range page.Items {
			if one.ID == "" || one.Name == "" || one.State == "" {
				return nil, vendor.Unread(adapters.KindUnavailable, nil, "it describes a snapshot without an id, a name or a state")
			}
			if strings.HasPrefix(one.Name, copyName(deployment, "")) {
				all = append(all, copied(one))
			}
		}
		if number >= page.TotalPages || len(page.Items) == 0 {
			return all, nil
		}
	}
}

// Forget removes a copy. Sandboxes that were made of it keep what they have.
func (p *Provider) Forget(ctx context.Context, snapshot adapters.Snapshot) error {
	if !strings.HasPrefix(snapshot.Ref, copyPrefix) {
		return adapters.Errorf(adapters.KindInvalid, "this is no snapshot that was made here")
	}
	p.unlearn(snapshot.Ref)
	for pause := time.Duration(0); ; {
		found, err := p.askSnapshot(ctx, snapshot.Ref)
		if err == nil {
			err = p.api.insist(ctx, request{method: http.MethodDelete, path: "/snapshots/" + url.PathEscape(found.ID)})
		}
		if adapters.KindOf(err) == adapters.KindNotFound && err != nil {
			return nil
		}
		if err != nil && found.State != "removing" {
			return err
		}
		if stopped := wait(ctx, &pause); stopped != nil {
			return stopped
		}
	}
}
