package vercel

import (
	"slices"

	"github.com/isthmus/isthmus/adapters"
)

// vendor is how messages name the provider.
const vendor adapters.Vendor = "Vercel"

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
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox without a status")
	case v.Sandbox.Tags == nil:
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a sandbox of our name without tags")
	case v.Sandbox.Status == statusRunning && v.Session.ID == "":
		return vendor.Unread(adapters.KindUnavailable, nil, "it describes a running sandbox without its session")
	}
	return nil
}
