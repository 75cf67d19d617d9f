package e2b

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/isthmus/isthmus/adapters"
)

// misread is the error for an answer that is not understood. makes says that the call was to make something: then it is
// not known whether it did.
func misread(makes bool, cause error, what string) *adapters.Error {
	if makes {
		return adapters.Misunderstood(adapters.KindUnknownOutcome, cause,
			"the server of the pool gave no answer that can be read ("+what+"): the sandbox may or may not have been made")
	}
	return adapters.Misunderstood(adapters.KindUnavailable, cause, "the server of the pool gave no answer that can be read: "+what)
}

// strange reports whether an error is not understood: it is not the JSON that servers of this protocol answer, in
// whatever words, and neither a proxy that cannot reach the server (5xx) nor one that refuses.
func strange(status int, text []byte) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	text = bytes.TrimSpace(text)
	object := json.Valid(text) && text[0] == '{'
	if status/100 == 3 {
		return true
	}
	return status < http.StatusInternalServerError && len(text) > 0 && !object
}

// sound looks that a box is described by what is needed of it. A state that is not known says neither that it lives nor
// that it has ended.
func (l listed) sound() error {
	switch {
	case l.SandboxID == "":
		return misread(false, nil, "it describes a sandbox without an id")
	case l.State != "" && l.State != "running" && l.State != "paused":
		return misread(false, nil, "the sandbox is "+adapters.Strange(l.State)+", which is not known here")
	}
	return nil
}

// bare reports whether a list has boxes and none of them has metadata, by which ours are told from others.
func bare(page []listed) bool {
	for _, one := range page {
		if one.Metadata != nil {
			return false
		}
	}
	return len(page) > 0
}
