package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Source is where requirements were stated, lowest precedence first.
type Source int

// The sources. Policy and Template bind: what comes after them can only narrow.
const (
	PoolDefault Source = iota
	Policy
	Template
	Metadata
	Header
)

// MetadataPrefix marks the metadata keys that are requirements. HeaderName is the header that states them.
const (
	MetadataPrefix = "isthmus:"
	HeaderName     = "X-Isthmus-Require"
)

// CodeInvalidRequirement is the error_code of a requirement that cannot be read, or of two that contradict.
const CodeInvalidRequirement = "invalid_requirement"

// String names the source as its author knows it.
func (s Source) String() string {
	switch s {
	case PoolDefault:
		return "the pool defaults"
	case Policy:
		return "the key's policy"
	case Template:
		return "the template"
	case Metadata:
		return "the metadata"
	}
	return "the header " + HeaderName
}

// Classes are the workload classes of the configuration: names for sets of requirements.
type Classes map[string]Requirements

// ParseClasses reads the classes of a configuration. A class cannot use another one.
func ParseClasses(named map[string]map[string]string) (Classes, error) {
	classes := Classes{}
	for _, class := range slices.Sorted(maps.Keys(named)) {
		if _, nested := named[class]["class"]; nested {
			return nil, invalid("the workload class %s uses another class: write its requirements out", class)
		}
		r, err := FromPairs(Template, named[class], nil)
		if err != nil {
			return nil, invalid("the workload class %s: %s", class, err)
		}
		classes[class] = r
	}
	return classes, nil
}

// Parse reads requirements in one line: pairs key=value separated by semicolons. Empty text asks for nothing.
// Errors are adapters.KindInvalid and name the pair.
func Parse(from Source, line string, classes Classes) (Requirements, error) {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(line, ";") {
		pair = strings.TrimSpace(pair)
		if pair == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found {
			return Requirements{}, invalid("%s in %s is no pair: write key=value; key=value", quote(pair), from)
		}
		if _, twice := pairs[key]; twice {
			return Requirements{}, invalid("%s states %s twice: state it once", from, quote(key))
		}
		pairs[key] = value
	}
	return FromPairs(from, pairs, classes)
}

// FromMetadata reads the requirements in a sandbox's metadata: the keys with MetadataPrefix. Other keys are
// the client's own, and all of them come back as they were set.
func FromMetadata(metadata map[string]string, classes Classes) (Requirements, error) {
	pairs := map[string]string{}
	for key, value := range metadata {
		if required, is := strings.CutPrefix(key, MetadataPrefix); is {
			pairs[required] = value
		}
	}
	return FromPairs(Metadata, pairs, classes)
}

// FromPairs reads requirements by key. A class stands for its own pairs, below those beside it; with nil
// classes its name is only kept.
func FromPairs(from Source, pairs map[string]string, classes Classes) (Requirements, error) {
	var r Requirements
	if len(pairs) == 0 {
		return r, nil
	}
	if class, named := pairs["class"]; named && classes != nil {
		stated, known := classes[class]
		if !known {
			return r, invalid("there is no workload class %s (%s): the classes are %s", quote(class), from, listed(slices.Sorted(maps.Keys(classes))))
		}
		r = overlay(r, stated)
	}
	keys := grammar()
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		if err := setPair(&r, keys, from, key, pairs[key]); err != nil {
			return Requirements{}, err
		}
	}
	if (r.Workload == workloadGPU || r.GPUCount > 0) && len(r.GPU) == 0 {
		r.GPU = []string{anyGPU} // said here, so that it binds although the workload itself is a preference
	}
	return r, nil
}

func setPair(r *Requirements, keys []Key, from Source, key, value string) error {
	at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == key })
	switch {
	case at < 0:
		return invalid("%s in %s is no requirement%s; docs/placement.md lists them", quote(key), from, nearest(keys, key))
	case from < keys[at].Lowest:
		return invalid("%s cannot be stated in %s: state it in %s or after it", key, from, keys[at].Lowest)
	case len(value) > maxText:
		return invalid("%s in %s has %d bytes: at most %d", key, from, len(value), maxText)
	}
	if err := keys[at].set(r, value); err != nil {
		return invalid("%s in %s has the value %s, but must be %s", key, from, quote(value), err)
	}
	return nil
}

// nearest suggests the key that was probably meant.
func nearest(keys []Key, key string) string {
	best, least := "", 3 // more changes than two are another word
	for _, k := range keys {
		if d := distance(k.Name, key, least); d < least {
			best, least = k.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return ": " + quote(best) + " may be meant"
}

// distance is the number of letters to insert, delete or replace to get from a to b, or most if it is more.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return min(row[len(b)], most)
}

// quote shows a client's text, shortened.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", text)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func contains(list []string, item string) bool { return slices.Contains(list, item) }

// invalid is the error for requirements that are wrong in themselves.
func invalid(format string, args ...any) *adapters.Error {
	err := adapters.Errorf(adapters.KindInvalid, format, args...)
	err.Code = CodeInvalidRequirement
	return err
}
