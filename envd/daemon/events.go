package daemon

import (
	"net/http"
	"strconv"
)

// serveJournal answers the journal's entries after a number: GET ?after=N.
func (d *Daemon) serveJournal(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	var after uint64
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			writeError(w, http.StatusBadRequest, "after must be the number of an entry")
			return
		}
	}
	writeJSON(w, d.journal.After(after))
}
