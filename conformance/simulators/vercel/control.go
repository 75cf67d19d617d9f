//go:build linux

package vercel

import (
	"net/http"
)

// serveControl is the simulator's own: what goes wrong (faults: GET, POST one, DELETE all), what was called
// (traffic: GET) and all that there is (sandboxes: GET).
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request, path string) {
	if err := s.admit(r); err != nil {
		writeFailure(w, err)
		return
	}
	switch r.Method + " " + path {
	case "POST faults":
		var fault Fault
		if err := read(r, &fault); err != nil {
			writeFailure(w, err)
			return
		}
		s.Inject(fault)
	case "DELETE faults":
		s.Inject()
	case "GET faults":
	case "GET sandboxes":
		writeJSON(w, http.StatusOK, map[string]any{"sandboxes": s.Sandboxes()})
		return
	case "GET traffic":
		writeJSON(w, http.StatusOK, s.Traffic())
		return
	default:
		writeFailure(w, notFound("The control"))
		return
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"faults": s.faults.plan})
}
