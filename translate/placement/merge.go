package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Stated are the requirements of one source.
type Stated struct {
	From Source
	Requirements
}

// Merge joins the layers in their precedence. Pool defaults fill what nobody states. Policy and template bind:
// whatever comes later narrows them, key by key, and never widens. The header replaces the metadata, because
// both are the client's own word. Errors are adapters.KindInvalid and name the two layers that contradict.
func Merge(layers ...Stated) (Requirements, error) {
	layers = slices.Clone(layers)
	slices.SortStableFunc(layers, func(a, b Stated) int { return cmp.Compare(a.From, b.From) })
	var defaults Requirements
	var binding []Stated
	client := Stated{From: Metadata}
	for _, l := range layers {
		switch {
		case l.From == PoolDefault:
			defaults = overlay(defaults, l.Requirements)
		case l.From >= Metadata:
			client.From = l.From
			client.Requirements = overlay(client.Requirements, l.Requirements)
		default:
			binding = append(binding, l)
		}
	}
	merged, err := narrowAll(append(binding, client))
	if err != nil {
		return Requirements{}, err
	}
	merged = overlay(defaults, merged)
	return merged, coherent(merged)
}

// overlay puts what over states in place of what under states.
func overlay(under, over Requirements) Requirements {
	under.Features = maps.Clone(under.Features)
	if over.Provider != "" {
		under.Fallback = nil // a fallback belongs to the destination beside it
	}
	for _, k := range grammar() {
		if text := k.text(&over); text != "" {
			_ = k.set(&under, text) // what text writes, set reads: TestTextIsRead
		}
	}
	return under
}

// narrowAll joins binding layers and the client's.
func narrowAll(layers []Stated) (Requirements, error) {
	var merged Requirements
	for i, l := range layers {
		merged.Features = maps.Clone(merged.Features)
		if l.Provider != "" {
			merged.Fallback = nil
		}
		for _, k := range grammar() {
			later := k.text(&l.Requirements)
			switch {
			case later == "":
			case k.narrow == nil:
				_ = k.set(&merged, later)
			case !k.narrow(&merged, &l.Requirements):
				from, earlier := lastStated(layers[:i], k)
				return Requirements{}, invalid("%s=%s in %s contradicts %s=%s in %s, which cannot be widened",
					k.Name, later, l.From, k.Name, earlier, from)
			}
		}
		if err := withinDestination(layers[:i], l); err != nil {
			return Requirements{}, err
		}
	}
	return merged, nil
}

// lastStated finds the layer that stated a key last.
func lastStated(layers []Stated, k Key) (Source, string) {
	for _, l := range slices.Backward(layers) {
		if text := k.text(&l.Requirements); text != "" {
			return l.From, text
		}
	}
	return PoolDefault, ""
}

// withinDestination refuses a fallback outside of the destination that an earlier layer fixed.
func withinDestination(earlier []Stated, l Stated) error {
	for _, e := range earlier {
		if e.Provider == "" {
			continue
		}
		for _, place := range l.Fallback {
			if place != e.Provider && !contains(e.Fallback, place) {
				return invalid("fallback=%s in %s goes outside of provider=%s with fallback %s in %s", strings.Join(l.Fallback, ","),
					l.From, e.Provider, listed(e.Fallback), e.From)
			}
		}
	}
	return nil
}

// coherent refuses requirements that contradict within themselves.
func coherent(r Requirements) error {
	switch {
	case r.Provider != "" && contains(r.Fallback, r.Provider):
		return invalid("fallback names %s, which provider names already: nothing is tried twice", r.Provider)
	case r.AffinityMode != "" && r.Affinity == "":
		return invalid("affinity-mode=%s is stated without affinity: state the name that binds the sandboxes", r.AffinityMode)
	case r.SpreadMode != "" && r.Spread == "":
		return invalid("spread-mode=%s is stated without spread: state the name that the sandboxes are spread by", r.SpreadMode)
	case r.Affinity != "" && r.Affinity == r.Spread && r.AffinityMode == modeHard && r.SpreadMode == modeHard:
		return invalid("affinity=%s and spread=%s contradict: both are hard", r.Affinity, r.Spread)
	case contains(r.Rank, RankRegion) && len(r.Near) == 0:
		return invalid("rank=region is stated without near: state the regions that are preferred")
	}
	return nil
}
