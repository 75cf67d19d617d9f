package admin

import (
	"net/http"
)

// backup streams the whole store. A failure in the middle breaks the answer off, so that half a backup does
// not pass for one.
func (a *Admin) backup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := a.config.Store.Engine().Backup(r.Context(), w); err != nil {
		a.config.Log.Error("backup failed", "err", err)
		panic(http.ErrAbortHandler)
	}
}
