package daemon

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/isthmus/isthmus/envd/daemon/keep"
)

// serveKeep stops the box's programs and keeps its files, or lets the programs go on. Where nothing could be kept, they
// go on.
func (d *Daemon) serveKeep(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodPut, http.MethodDelete) {
		return
	}
	d.keeping.Lock()
	defer d.keeping.Unlock()
	err := error(nil)
	if r.Method == http.MethodDelete {
		err = keep.Thaw()
	} else if err = d.keepFiles(r.Context()); err != nil {
		err = errors.Join(err, keep.Thaw())
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		writeError(w, http.StatusInsufficientStorage, "the volume for pauses is full")
	case err != nil:
		d.journal.Warn("a pause failed", "err", err.Error())
		writeError(w, http.StatusInternalServerError, err.Error())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (d *Daemon) keepFiles(ctx context.Context) error {
	if err := keep.Freeze(ctx); err != nil {
		return err
	}
	return d.options.Keep.Save(ctx)
}
