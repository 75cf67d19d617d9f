package fleet

import (
	"errors"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
)

// notFound is the answer for a sandbox that is not there, and for one of another team: which of the two is
// nobody's business.
func notFound(id string) error {
	return adapters.Errorf(adapters.KindNotFound, "sandbox %s was not found: it never was, was killed, or has timed out", id)
}

// endingError is the answer for a sandbox that is being killed.
func endingError(id string) error {
	return adapters.Errorf(adapters.KindPrecondition, "sandbox %s is being killed", id)
}

// isStopping reports whether Run has begun to stop.
func (f *Fleet) isStopping() bool {
	select {
	case <-f.stopped:
		return true
	default:
		return false
	}
}

// stopping is the answer while the facade shuts down.
func stopping() error {
	return adapters.Errorf(adapters.KindUnavailable, "Isthmus is stopping: try again when it is back")
}

// storeError classifies what the store returned for one sandbox.
func storeError(id string, err error) error {
	var typed *adapters.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return err
	case errors.Is(err, store.ErrNotFound):
		return notFound(id)
	case errors.Is(err, store.ErrTooBig):
		return adapters.Errorf(adapters.KindInvalid, "the sandbox's envVars, metadata and network rules are together larger than the 1 MiB that is kept: send large data as files")
	case errors.Is(err, store.ErrFull):
		return adapters.Errorf(adapters.KindCapacity, "the disk of this Isthmus's data folder is full: end sandboxes, or make room there")
	}
	if kind := adapters.KindOf(err); kind != adapters.KindInternal {
		return adapters.Wrap(kind, err, "the request was ended before it was done")
	}
	return adapters.Wrap(adapters.KindInternal, err, "the store of this Isthmus failed: its log says why")
}
