package daytona

import (
	"net/http"
	"time"

	"github.com/google/uuid"
)

// registry is the account at a registry of images, of the whole organization.
type registry struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	URL          string    `json:"url"`
	Username     string    `json:"username"`
	Project      string    `json:"project"`
	RegistryType string    `json:"registryType"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
}

func (s *Simulator) listRegistries(*http.Request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []registry{}
	for _, one := range s.registries {
		all = append(all, one)
	}
	return ok(all)
}

// createRegistry keeps an account; its password is never shown again.
func (s *Simulator) createRegistry(r *http.Request) (reply, error) {
	var body struct {
		registry
		Password string `json:"password"`
	}
	if err := read(r, &body); err != nil {
		return reply{}, err
	}
	if body.Name == "" || body.URL == "" || body.Username == "" || body.Password == "" {
		return reply{}, invalid("name, url, username and password should not be empty")
	}
	one := body.registry
	one.ID, one.RegistryType, one.CreatedAt = uuid.NewString(), "organization", time.Now().UTC()
	one.UpdatedAt = one.CreatedAt
	s.mu.Lock()
	s.registries[one.ID] = one
	s.mu.Unlock()
	return reply{http.StatusCreated, one}, nil
}

func (s *Simulator) deleteRegistry(r *http.Request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	if _, there := s.registries[id]; !there {
		return reply{}, notFound("Docker registry with ID " + id + " not found")
	}
	delete(s.registries, id)
	return reply{status: http.StatusNoContent}, nil
}

// region is what the only region has and uses.
func (s *Simulator) region() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cpu, memory, disk int
	for _, sb := range s.sandboxes {
		sb.mu.Lock()
		f := sb.facts
		sb.mu.Unlock()
		disk += f.Disk
		if f.State == stateStarted {
			cpu, memory = cpu+f.CPU, memory+f.Memory
		}
	}
	l := s.config.Limits
	return map[string]any{
		"regionId": "us", "totalCpuQuota": l.CPU, "currentCpuUsage": cpu, "totalMemoryQuota": l.Memory, "currentMemoryUsage": memory,
		"totalDiskQuota": l.Disk, "currentDiskUsage": disk, "totalGpuQuota": 0, "currentGpuUsage": 0,
		"maxCpuPerSandbox": l.SandboxCPU, "maxMemoryPerSandbox": l.SandboxMemory, "maxDiskPerSandbox": l.SandboxDisk,
	}
}

func (s *Simulator) usage(*http.Request) (reply, error) {
	return ok(map[string]any{
		"regionUsage": []any{s.region()}, "totalSnapshotQuota": 100, "currentSnapshotUsage": 0, "totalVolumeQuota": 0, "currentVolumeUsage": 0,
	})
}

func (s *Simulator) regionQuota(*http.Request, *sandbox) (reply, error) { return ok(s.region()) }

// deployment is what a server says of itself.
func (s *Simulator) deployment(r *http.Request) (reply, error) {
	return ok(map[string]any{
		"version": daemonVersion, "proxyToolboxUrl": "http://" + r.Host + "/toolbox", "defaultSnapshot": defaultSnapshot,
		"environment": "simulated", "maintananceMode": false,
	})
}

// buildLogs has no logs: no image is built.
func (s *Simulator) buildLogs(r *http.Request, sb *sandbox) (reply, error) {
	return ok(map[string]any{"url": "http://" + r.Host + "/api/sandbox/" + sb.facts.ID + "/build-logs"})
}
