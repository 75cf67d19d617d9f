package envd

import (
	"maps"
	"slices"
)

// MaxVariable is the longest variable of an environment, NAME=value in bytes, that Linux hands to a program: its
// MAX_ARG_STRLEN with pages of 4 KiB, less the byte that ends the text.
const MaxVariable = 32*4096 - 1

// LongVariable returns the name of a variable that no program can be started with; empty: there is none.
func LongVariable(vars map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if len(name)+len("=")+len(vars[name]) > MaxVariable {
			return name
		}
	}
	return ""
}
