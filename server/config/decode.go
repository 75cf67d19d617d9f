package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// decode fills a struct from YAML. It is our own walk because the library stops at the first fault, and an
// operator wants to see all of them.
func decode(text []byte, into any) (Faults, error) {
	var tree, second any
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("this is not YAML: %s", yaml.FormatError(err, false, true))
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document, of which only the first would count: take out the lines of ---")
	}
	var w walk
	if tree != nil {
		w.value("", tree, reflect.ValueOf(into).Elem())
	}
	return w.faults, nil
}

type walk struct {
	faults Faults
}

func (w *walk) fault(path, format string, args ...any) {
	if path == "" {
		path = "(the file)"
	}
	w.faults = append(w.faults, Fault{path, fmt.Sprintf(format, args...)})
}

// value sets one field. A null keeps the default.
func (w *walk) value(path string, from any, to reflect.Value) {
	if from == nil {
		return
	}
	if to.Type() == reflect.TypeFor[time.Duration]() {
		w.duration(path, from, to)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		w.fields(path, from, to)
	case reflect.String:
		if text, ok := from.(string); ok {
			to.SetString(text)
			return
		}
		w.fault(path, "must be text, not %s: put it in quotes", name(from))
	case reflect.Bool:
		if yes, ok := from.(bool); ok {
			to.SetBool(yes)
			return
		}
		w.fault(path, "must be true or false, not %s", name(from))
	case reflect.Int:
		w.integer(path, from, to)
	case reflect.Float64:
		w.number(path, from, to)
	case reflect.Slice:
		w.list(path, from, to)
	case reflect.Map:
		w.mapping(path, from, to)
	default:
		panic("config: a field of a kind that decode does not know: " + path)
	}
}

func (w *walk) fields(path string, from any, to reflect.Value) {
	tree, ok := from.(map[string]any)
	if !ok {
		w.fault(path, "must hold fields, not %s", kind(from))
		return
	}
	known := map[string]int{}
	for i := range to.NumField() {
		known[to.Type().Field(i).Tag.Get("yaml")] = i
	}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		i, ok := known[key]
		if !ok {
			w.fault(join(path, key), "is not known: the fields here are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		w.value(join(path, key), tree[key], to.Field(i))
	}
}

func (w *walk) integer(path string, from any, to reflect.Value) {
	switch number := from.(type) {
	case uint64:
		if number <= math.MaxInt {
			to.SetInt(int64(number))
			return
		}
	case int64:
		to.SetInt(number)
		return
	}
	w.fault(path, "must be a whole number, not %s", name(from))
}

// number takes a number with or without a fraction.
func (w *walk) number(path string, from any, to reflect.Value) {
	switch number := from.(type) {
	case float64:
		if !math.IsNaN(number) && !math.IsInf(number, 0) {
			to.SetFloat(number)
			return
		}
	case uint64:
		to.SetFloat(float64(number))
		return
	case int64:
		to.SetFloat(float64(number))
		return
	}
	w.fault(path, "must be a number, not %s", name(from))
}

func (w *walk) duration(path string, from any, to reflect.Value) {
	text, ok := from.(string)
	if !ok {
		w.fault(path, "must be a time with its unit, such as 90m or 24h, not %s", name(from))
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		w.fault(path, "must be a time with its unit, such as 90m or 24h, not %q", text)
		return
	}
	to.SetInt(int64(d))
}

func (w *walk) list(path string, from any, to reflect.Value) {
	items, ok := from.([]any)
	if !ok {
		w.fault(path, "must be a list, not %s", kind(from))
		return
	}
	list := reflect.MakeSlice(to.Type(), len(items), len(items))
	for i, item := range items {
		w.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	to.Set(list)
}

func (w *walk) mapping(path string, from any, to reflect.Value) {
	tree, ok := from.(map[string]any)
	if !ok {
		w.fault(path, "must hold names and values, not %s", kind(from))
		return
	}
	filled := reflect.MakeMapWithSize(to.Type(), len(tree))
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		item := reflect.New(to.Type().Elem()).Elem()
		w.value(join(path, key), tree[key], item)
		filled.SetMapIndex(reflect.ValueOf(key), item)
	}
	to.Set(filled)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// kind says what was found where no value of its own belongs. Text is not repeated: it may be a key that was written where
// its place belongs.
func kind(value any) string {
	if _, text := value.(string); text {
		return "text"
	}
	return name(value)
}

// name says what was found, for messages.
func name(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "fields"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprint(value)
}
