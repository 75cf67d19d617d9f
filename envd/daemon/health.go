package daemon

import (
	"encoding/json"
	"net/http"
)

// serveHealth says that the daemon answers.
func (d *Daemon) serveHealth(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "")
	w.WriteHeader(http.StatusNoContent)
}

// serveEnvs answers the sandbox-wide variables, for servers in the sandbox that start programs themselves.
func (d *Daemon) serveEnvs(w http.ResponseWriter, r *http.Request) {
	if allow(w, r, http.MethodGet) {
		writeJSON(w, d.settings.environment())
	}
}

// writeJSON answers a value that is of this moment only.
func writeJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
