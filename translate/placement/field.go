package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is how the value of one key is read, written and joined. There are few kinds of value, so that a new
// key is one line in the table.
type field struct {
	// set reads a value. Its error says which values there are.
	set func(r *Requirements, text string) error
	// text writes the value in its canonical form; empty when it is unset.
	text func(r *Requirements) string
	// narrow joins a later layer's value to a binding one so that both hold; false when both cannot. nil: the
	// later value replaces the earlier one, because the key only states a preference.
	narrow func(into, by *Requirements) bool
}

// Bounds on what one key may hold: every list of sandboxes and every record carries it.
const (
	maxItems = 32
	maxText  = 1024 // bytes of one value
	maxName  = 128  // bytes of one name in it
)

// number is a whole number from 1 to most; a later layer can only raise it.
func number(at func(*Requirements) *int, most int) field {
	return field{
		set: func(r *Requirements, text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > most {
				return fmt.Errorf("a whole number from 1 to %d", most)
			}
			*at(r) = n
			return nil
		},
		text: func(r *Requirements) string { return positive(*at(r), strconv.Itoa) },
		narrow: func(into, by *Requirements) bool {
			*at(into) = max(*at(into), *at(by))
			return true
		},
	}
}

// size is a number of MiB, written as 512MiB, 4GiB or 512; a later layer can only raise it.
func size(at func(*Requirements) *int) field {
	const most = 1 << 30 // a PiB
	f := number(at, most)
	f.set = func(r *Requirements, text string) error {
		digits, unit := strings.TrimSuffix(text, "MiB"), 1
		if inGiB, found := strings.CutSuffix(text, "GiB"); found {
			digits, unit = inGiB, 1024
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > most/unit {
			return fmt.Errorf("a size as 512MiB or 4GiB; a number alone is in MiB")
		}
		*at(r) = n * unit
		return nil
	}
	f.text = func(r *Requirements) string { return positive(*at(r), mib) }
	return f
}

// span is a time in whole seconds, written as 90m, 24h or 3600; a later layer can only raise it.
func span(at func(*Requirements) *time.Duration) field {
	const most = 10 * 365 * 24 * time.Hour
	return field{
		set: func(r *Requirements, text string) error {
			d, err := time.ParseDuration(text)
			if seconds, notNumber := strconv.ParseInt(text, 10, 32); notNumber == nil {
				d, err = time.Duration(seconds)*time.Second, nil
			}
			if err != nil || d < time.Second || d > most || d%time.Second != 0 {
				return fmt.Errorf("a time of whole seconds as 90m or 24h; a number alone is in seconds")
			}
			*at(r) = d
			return nil
		},
		text: func(r *Requirements) string { return positive(*at(r), brief) },
		narrow: func(into, by *Requirements) bool {
			*at(into) = max(*at(into), *at(by))
			return true
		},
	}
}

// level is one of some words from the lowest to the highest; a later layer can only raise it.
func level(at func(*Requirements) *string, words ...string) field {
	f := choice(at, words...)
	f.narrow = func(into, by *Requirements) bool {
		if slices.Index(words, *at(by)) > slices.Index(words, *at(into)) {
			*at(into) = *at(by)
		}
		return true
	}
	return f
}

// depth is a level of state: true stands for the lowest.
func depth(at func(*Requirements) *string) field {
	f := level(at, levels()...)
	words := f.set
	f.set = func(r *Requirements, text string) error {
		if text == string(FlagOn) {
			text = levels()[0]
		}
		return words(r, text)
	}
	return f
}

// choice is one of some words; a later layer replaces it.
func choice(at func(*Requirements) *string, words ...string) field {
	return field{
		set: func(r *Requirements, text string) error {
			if !slices.Contains(words, text) {
				return fmt.Errorf("one of %s", strings.Join(words, ", "))
			}
			*at(r) = text
			return nil
		},
		text: func(r *Requirements) string { return *at(r) },
	}
}

// name is a word of the user's; a later layer replaces it.
func name(at func(*Requirements) *string) field {
	return field{
		set: func(r *Requirements, text string) error {
			if !isName(text) {
				return errName()
			}
			*at(r) = text
			return nil
		},
		text: func(r *Requirements) string { return *at(r) },
	}
}

// same lets a later layer repeat what a binding one says, and nothing else.
func same(f field) field {
	f.narrow = func(into, by *Requirements) bool {
		switch earlier, later := f.text(into), f.text(by); {
		case later == "", later == earlier:
			return true
		case earlier != "":
			return false
		default:
			return f.set(into, later) == nil
		}
	}
	return f
}

// names is a list of words, each one once, in the order given; a later layer replaces it. With words given,
// only those are allowed.
func names(at func(*Requirements) *[]string, words ...string) field {
	return field{
		set: func(r *Requirements, text string) error {
			list, err := split(text, words)
			if err != nil {
				return err
			}
			*at(r) = list
			return nil
		},
		text: func(r *Requirements) string { return strings.Join(*at(r), ",") },
	}
}

// all is a list of which everything must hold; a later layer adds to it.
func all(at func(*Requirements) *[]string, words ...string) field {
	f := names(at, words...)
	f.narrow = func(into, by *Requirements) bool {
		*at(into) = slices.Clone(*at(into))
		for _, item := range *at(by) {
			if !slices.Contains(*at(into), item) {
				*at(into) = append(*at(into), item)
			}
		}
		return true
	}
	return f
}

// oneOf is a list of which one will do, in the order given; a later layer can only take items away. wildcard
// stands for every item; empty: there is none.
func oneOf(at func(*Requirements) *[]string, wildcard string) field {
	f := names(at)
	f.narrow = func(into, by *Requirements) bool {
		earlier, later := *at(into), *at(by)
		open := func(list []string) bool { return wildcard != "" && slices.Contains(list, wildcard) }
		switch {
		case len(later) == 0 || open(later) && len(earlier) > 0:
			return true
		case len(earlier) == 0 || open(earlier):
			*at(into) = slices.Clone(later)
			return true
		}
		*at(into) = slices.DeleteFunc(slices.Clone(later), func(s string) bool { return !slices.Contains(earlier, s) })
		return len(*at(into)) > 0
	}
	return f
}

// flag is true or false. What a binding layer needs, a later one cannot call needless.
func flag(get func(*Requirements) Flag, put func(*Requirements, Flag)) field {
	f := field{
		set: func(r *Requirements, text string) error {
			if text != string(FlagOn) && text != string(FlagOff) {
				return fmt.Errorf("true or false")
			}
			put(r, Flag(text))
			return nil
		},
		text: func(r *Requirements) string { return string(get(r)) },
	}
	f.narrow = func(into, by *Requirements) bool {
		if get(by) != FlagUnset {
			if get(into) == FlagOn && get(by) == FlagOff {
				return false
			}
			put(into, get(by))
		}
		return true
	}
	return f
}

// feature is a flag in Requirements.Features.
func feature(key string) field {
	return flag(
		func(r *Requirements) Flag { return r.Features[key] },
		func(r *Requirements, f Flag) {
			if r.Features == nil {
				r.Features = map[string]Flag{}
			}
			r.Features[key] = f
		})
}

// regions are groups joined by +, each a list of which one will do; a later layer adds its groups.
func regions(at func(*Requirements) *[][]string) field {
	return field{
		set: func(r *Requirements, text string) error {
			var groups [][]string
			for group := range strings.SplitSeq(text, "+") {
				list, err := split(group, nil)
				if err != nil {
					return err
				}
				groups = appendGroup(groups, list)
			}
			if len(groups) > maxItems {
				return fmt.Errorf("at most %d groups", maxItems)
			}
			*at(r) = groups
			return nil
		},
		text: func(r *Requirements) string {
			var groups []string
			for _, group := range *at(r) {
				groups = append(groups, strings.Join(group, ","))
			}
			return strings.Join(groups, "+")
		},
		narrow: func(into, by *Requirements) bool {
			*at(into) = slices.Clone(*at(into))
			for _, group := range *at(by) {
				*at(into) = appendGroup(*at(into), group)
			}
			return true
		},
	}
}

func appendGroup(groups [][]string, group []string) [][]string {
	if slices.ContainsFunc(groups, func(g []string) bool { return slices.Equal(g, group) }) {
		return groups
	}
	return append(groups, group)
}

// split reads a list: names separated by commas, each one once.
func split(text string, words []string) ([]string, error) {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		switch {
		case len(words) > 0 && !slices.Contains(words, item):
			return nil, fmt.Errorf("a list of %s", strings.Join(words, ", "))
		case !isName(item):
			return nil, errName()
		case slices.Contains(list, item):
			return nil, fmt.Errorf("each of its items once: %s is there twice", item)
		case len(list) == maxItems:
			return nil, fmt.Errorf("at most %d items", maxItems)
		}
		list = append(list, item)
	}
	return list, nil
}

// isName reports whether text is a word that needs no quoting anywhere in the grammar.
func isName(text string) bool {
	if text == "" || len(text) > maxName {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._-:/@", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func errName() error {
	return fmt.Errorf("a name of 1 to %d letters, digits and . _ - : / @", maxName)
}

// positive writes a number, and nothing when it is unset.
func positive[N int | time.Duration](n N, write func(N) string) string {
	if n == 0 {
		return ""
	}
	return write(n)
}

// brief writes a time of whole seconds without zeros at its end.
func brief(d time.Duration) string {
	text := d.String()
	if short, cut := strings.CutSuffix(text, "m0s"); cut {
		text = short + "m"
	}
	if short, cut := strings.CutSuffix(text, "h0m"); cut {
		text = short + "h"
	}
	return text
}

// mib writes a number of MiB.
func mib(n int) string {
	if n%1024 == 0 {
		return strconv.Itoa(n/1024) + "GiB"
	}
	return strconv.Itoa(n) + "MiB"
}
