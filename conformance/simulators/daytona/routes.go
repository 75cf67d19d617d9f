package daytona

import (
	"net/http"
)

// operation is one call of the API. Its name is what faults are aimed by.
type operation struct {
	name     string
	pattern  string
	throttle string // beside that of all requests
	run      func(r *http.Request) (reply, error)
}

// operations are the calls of the API that are served.
func (s *Simulator) operations() []operation {
	return []operation{
		{"create", "POST /sandbox", throttleCreate, s.create},
		{"list", "GET /sandbox", "", s.list},
		{"get", "GET /sandbox/{id}", "", s.with(s.get)},
		{"state", "GET /sandbox/{id}/state", "", s.with(s.stateOf)},
		{"delete", "DELETE /sandbox/{id}", throttleLifecycle, s.with(s.destroy)},
		{"start", "POST /sandbox/{id}/start", throttleLifecycle, s.with(s.start)},
		{"stop", "POST /sandbox/{id}/stop", throttleLifecycle, s.with(s.stop)},
		{"pause", "POST /sandbox/{id}/pause", throttleLifecycle, s.with(s.pause)},
		{"archive", "POST /sandbox/{id}/archive", throttleLifecycle, s.with(s.archive)},
		{"recover", "POST /sandbox/{id}/recover", throttleLifecycle, s.with(s.recover)},
		{"resize", "POST /sandbox/{id}/resize", throttleLifecycle, s.with(s.resize)},
		{"fork", "POST /sandbox/{id}/fork", throttleCreate, s.with(s.fork)},
		{"snapshot", "POST /sandbox/{id}/snapshot", throttleLifecycle, s.with(s.snapshotOf)},
		{"labels", "PUT /sandbox/{id}/labels", "", s.with(s.relabel)},
		{"timer", "POST /sandbox/{id}/{timer}/{minutes}", "", s.with(s.setTimer)},
		{"activity", "POST /sandbox/{id}/last-activity", "", s.with(s.touch)},
		{"network", "POST /sandbox/{id}/network-settings", "", s.with(s.setNetwork)},
		{"preview", "GET /sandbox/{id}/ports/{port}/preview-url", "", s.with(s.previewURL)},
		{"signed preview", "GET /sandbox/{id}/ports/{port}/signed-preview-url", "", s.with(s.signedURL)},
		{"expire preview", "POST /sandbox/{id}/ports/{port}/signed-preview-url/{token}/expire", "", s.with(s.expireURL)},
		{"toolbox url", "GET /sandbox/{id}/toolbox-proxy-url", "", s.with(s.toolboxURL)},
		{"build logs", "GET /sandbox/{id}/build-logs-url", "", s.with(s.buildLogs)},
		{"quota", "GET /sandbox/{id}/region-quota", "", s.with(s.regionQuota)},
		{"snapshots", "GET /snapshots", "", s.listSnapshots},
		{"create snapshot", "POST /snapshots", "", s.createSnapshot},
		{"get snapshot", "GET /snapshots/{id}", "", s.getSnapshot},
		{"delete snapshot", "DELETE /snapshots/{id}", "", s.deleteSnapshot},
		{"activate snapshot", "POST /snapshots/{id}/activate", "", s.activateSnapshot},
		{"registries", "GET /docker-registry", "", s.listRegistries},
		{"create registry", "POST /docker-registry", "", s.createRegistry},
		{"delete registry", "DELETE /docker-registry/{id}", "", s.deleteRegistry},
		{"usage", "GET /organizations/{id}/usage", "", s.usage},
		{"config", "GET /config", "", s.deployment},
	}
}

func (s *Simulator) serveAPI() *http.ServeMux {
	mux := http.NewServeMux()
	for _, op := range s.operations() {
		mux.HandleFunc(op.pattern, s.operate(op))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, notFound("Cannot "+r.Method+" "+r.URL.Path))
	})
	return mux
}

// operate runs one call within the limits of rate, and the faults that are switched on.
func (s *Simulator) operate(op operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, throttler := range []string{throttleAll, op.throttle} {
			if err := s.throttle.pass(w.Header(), throttler); err != nil {
				refuse(w, r, err)
				return
			}
		}
		struck := s.faults.strike(op.name)
		if struck.before(w, r) {
			return
		}
		done, err := op.run(r.WithContext(withFault(r.Context(), struck)))
		if struck.after(w, r) {
			return
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		answer(w, done.status, done.body)
	}
}

// with finds the sandbox of a request, by its id or its name.
func (s *Simulator) with(run func(*http.Request, *sandbox) (reply, error)) func(*http.Request) (reply, error) {
	return func(r *http.Request) (reply, error) {
		sb := s.find(r.PathValue("id"))
		if sb == nil {
			return reply{}, notFound("Sandbox with ID or name " + r.PathValue("id") + " not found")
		}
		return run(r, sb)
	}
}
