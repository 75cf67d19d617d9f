package config

import (
	"reflect"
	"slices"
)

// loaded are the fields that a reload puts in place.
var loaded = []string{"pools", "ranking", "classes", "require", "local.warm"}

// NeedsStart returns the paths of the fields in which a configuration differs from the one that Isthmus was started with
// and which a reload does not put in place.
func NeedsStart(started, now Config) []string {
	return differ("", reflect.ValueOf(started), reflect.ValueOf(now))
}

func differ(path string, a, b reflect.Value) []string {
	var paths []string
	for i := range a.NumField() {
		field := join(path, a.Type().Field(i).Tag.Get("yaml"))
		switch {
		case slices.Contains(loaded, field):
		case a.Field(i).Kind() == reflect.Struct:
			paths = append(paths, differ(field, a.Field(i), b.Field(i))...)
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			paths = append(paths, field)
		}
	}
	return paths
}
