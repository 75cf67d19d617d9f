package files

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The two codings that are served.
const (
	identityCoding = "identity"
	gzipCoding     = "gzip"
)

// Errors of acceptable, worded for clients.
var (
	errNoCoding   = errors.New("error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]")
	errNoIdentity = errors.New("identity encoding not acceptable for Range or conditional request")
)

// coding is one item of Accept-Encoding.
type coding struct {
	name    string
	quality float64
}

// acceptable chooses the coding of an answer: the one that we have and the client prefers. Ranges and
// conditions are about the file as it is, so they are answered without compression only.
func acceptable(header http.Header) (string, error) {
	wanted, refusesIdentity := preferences(header)
	if needsIdentity(header) {
		if refusesIdentity {
			return "", errNoIdentity
		}
		return identityCoding, nil
	}
	for _, c := range wanted {
		switch {
		case c.name == gzipCoding:
			return gzipCoding, nil
		case c.name == identityCoding, c.name == "*" && !refusesIdentity:
			return identityCoding, nil
		case c.name == "*":
			return gzipCoding, nil
		}
	}
	if refusesIdentity {
		return "", errNoCoding
	}
	return identityCoding, nil
}

func needsIdentity(header http.Header) bool {
	for _, name := range [...]string{"Range", "If-Modified-Since", "If-None-Match", "If-Range"} {
		if header.Get(name) != "" {
			return true
		}
	}
	return false
}

// preferences returns what a client accepts, best first, and whether it refuses an answer without coding. An
// item whose quality is no number counts for nothing.
func preferences(header http.Header) (wanted []coding, refusesIdentity bool) {
	named, all := map[string]bool{}, strings.Join(header.Values("Accept-Encoding"), ",")
	for item := range strings.SplitSeq(all, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		quality, ok := quality(parameters)
		if name == "" || !ok {
			continue
		}
		named[name] = quality > 0
		if quality > 0 {
			wanted = append(wanted, coding{name, quality})
		}
	}
	slices.SortStableFunc(wanted, func(a, b coding) int { return cmp.Compare(b.quality, a.quality) })
	accepted, mentioned := named[identityCoding]
	if !mentioned {
		accepted, mentioned = named["*"]
	}
	return wanted, mentioned && !accepted
}

func quality(parameters string) (float64, bool) {
	value, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameters)), "q=")
	if !ok {
		return 1, true
	}
	quality, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return quality, err == nil && quality >= 0 && quality <= 1
}
