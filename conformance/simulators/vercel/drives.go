//go:build linux

package vercel

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// driveSize is what a drive may hold when nothing is asked for.
const driveSize = 1 << 40

// makeDrive answers a drive by its name, and makes it when it is not there.
func (s *Server) makeDrive(r *http.Request) (any, error) {
	var body struct {
		ProjectID    string `json:"projectId"`
		Region       string `json:"region"`
		MaxSizeBytes int64  `json:"maxSizeBytes"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.ProjectID != s.config.Project {
		return nil, notFound("The project")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("drive")
	fresh := s.drives[name] == nil
	if fresh {
		now := milliseconds(time.Now())
		s.drives[name] = &drive{Drive: Drive{
			ID: newID("drv_"), Name: name, ProjectID: s.config.Project, Region: cmp.Or(body.Region, defaultRegion),
			MaxSizeBytes: cmp.Or(body.MaxSizeBytes, driveSize), CreatedAt: now, UpdatedAt: now,
		}}
	}
	answer := map[string]any{"drive": s.drives[name].Drive}
	if fresh {
		return created{answer}, nil
	}
	return answer, nil
}

// forkDrive makes a drive that holds what another one holds: what the sessions that have ended wrote.
func (s *Server) forkDrive(r *http.Request) (any, error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.Name == "" {
		return nil, badRequest("The name of the fork is missing.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.drives[r.PathValue("drive")]
	switch {
	case from == nil:
		return nil, notFound("The drive")
	case s.drives[body.Name] != nil:
		return nil, fail(http.StatusConflict, "conflict", fmt.Sprintf("A drive named %q exists already.", body.Name))
	}
	fork := &drive{Drive: from.Drive, held: from.held}
	fork.ID, fork.Name, fork.CurrentSandbox, fork.CurrentSession = newID("drv_"), body.Name, "", ""
	fork.ParentDrive, fork.RootDrive = from.ID, cmp.Or(from.RootDrive, from.ID)
	fork.CreatedAt = milliseconds(time.Now())
	fork.UpdatedAt = fork.CreatedAt
	s.drives[fork.Name] = fork
	return created{map[string]any{"drive": fork.Drive}}, nil
}

// listDrives answers the drives of the project.
func (s *Server) listDrives(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Drive
	for _, one := range s.drives {
		if strings.HasPrefix(one.Name, r.URL.Query().Get("namePrefix")) {
			all = append(all, one.Drive)
		}
	}
	slices.SortFunc(all, func(a, b Drive) int { return cmp.Compare(a.Name, b.Name) })
	items, pages, err := page(r, all)
	return map[string]any{"drives": items, "pagination": pages}, err
}

// getDrive answers one drive, by its name or id.
func (s *Server) getDrive(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.drives {
		if wanted := r.PathValue("drive"); one.Name == wanted || one.ID == wanted {
			return map[string]any{"drive": one.Drive}, nil
		}
	}
	return nil, notFound("The drive")
}

// deleteDrive removes a drive that no sandbox has.
func (s *Server) deleteDrive(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.drives[r.PathValue("drive")]
	switch {
	case one == nil:
		return nil, notFound("The drive")
	case one.CurrentSandbox != "":
		return nil, fail(http.StatusConflict, "conflict", fmt.Sprintf("The drive is attached to the sandbox %s.", one.CurrentSandbox))
	}
	delete(s.drives, one.Name)
	return map[string]any{"drive": one.Drive}, nil
}

// attach gives a sandbox the drives that it mounts; one that is written to belongs to one sandbox. mu is held.
func (s *Server) attach(b *sandbox) error {
	for path, mount := range b.info.Mounts {
		one := s.drives[mount.Drive]
		switch {
		case !strings.HasPrefix(path, "/"):
			return badRequest("A drive is mounted at an absolute path.")
		case one == nil:
			return notFound("The drive " + mount.Drive)
		case mount.Mode == readOnly:
		case one.CurrentSandbox != "":
			return fail(http.StatusConflict, "conflict", fmt.Sprintf("The drive is attached to the sandbox %s.", one.CurrentSandbox))
		default:
			one.CurrentSandbox = b.info.Name
		}
	}
	return nil
}

// detach takes the drives of a sandbox away; mu is held.
func (s *Server) detach(b *sandbox) {
	for _, one := range s.drives {
		if one.CurrentSandbox == b.info.Name {
			one.CurrentSandbox = ""
		}
	}
}
