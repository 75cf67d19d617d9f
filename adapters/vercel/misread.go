package vercel

import (
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// misread is the error for an answer that is not understood. makes says that the call was to make something: then it is
// not known whether it did.
func misread(makes bool, cause error, what string) *adapters.Error {
	if makes {
		return adapters.Misunderstood(adapters.KindUnknownOutcome, cause, "Vercel gave no answer that can be read ("+what+"): it may or may not have been done")
	}
	return unread(cause, what)
}

// unread is the error for an answer that is not understood, where that changes nothing.
func unread(cause error, what string) *adapters.Error {
	return adapters.Misunderstood(adapters.KindUnavailable, cause, "Vercel gave no answer that can be read: "+what)
}

// statuses are those that are known. Any other one is taken for life.
func statuses() []string {
	return []string{statusPending, statusRunning, "stopping", statusStopped, statusFailed, statusAborted, "snapshotting"}
}

// strange reports whether the status is none of those that are known.
func (s sandbox) strange() bool { return !slices.Contains(statuses(), s.Status) }

// strangeStatus is the error for a sandbox that is in a status which is not known, where what it means matters.
func strangeStatus(kind adapters.Kind, s sandbox) error {
	return adapters.Misunderstood(kind, nil, "Vercel says that the sandbox is "+adapters.Strange(s.Status)+", which is not known here")
}

// sound looks that a sandbox of our name is described by what tells whose it is and how it is reached. That it carries
// no tag must not pass for proof that it is not ours.
func (v view) sound() error {
	switch {
	case v.Sandbox.Status == "":
		return unread(nil, "it describes a sandbox without a status")
	case v.Sandbox.Tags == nil:
		return unread(nil, "it describes a sandbox of our name without tags")
	case v.Sandbox.Status == statusRunning && v.Session.ID == "":
		return unread(nil, "it describes a running sandbox without its session")
	}
	return nil
}
