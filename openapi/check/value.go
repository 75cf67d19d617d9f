package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// value checks a decoded JSON value and returns it without the properties that the document does not name.
// Dropping them here makes the later decoding exact: encoding/json alone would also accept "TIMEOUT".
func (r *rule) value(where string, v any) (any, error) {
	switch r.Type {
	case "object":
		return r.object(where, v)
	case "array":
		return r.array(where, v)
	case "string":
		text, ok := v.(string)
		if !ok {
			return nil, &Fault{where, "must be a string"}
		}
		return v, r.text(where, text)
	case "boolean":
		if _, ok := v.(bool); !ok {
			return nil, &Fault{where, "must be true or false"}
		}
		return v, nil
	case "integer", "number":
		number, ok := v.(json.Number)
		if !ok {
			return nil, &Fault{where, "must be a number"}
		}
		return v, r.number(where, number.String())
	}
	return v, nil
}

func (r *rule) object(where string, v any) (any, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, &Fault{where, "must be an object"}
	}
	for _, name := range r.required {
		if object[name] == nil {
			return nil, &Fault{join(where, name), "is required"}
		}
	}
	kept := make(map[string]any, len(object))
	for name, inner := range object {
		property, known := r.properties[name]
		switch {
		case known && inner == nil: // null is the same as absent
			continue
		case known:
		case r.extra != nil:
			property = r.extra
		case r.extraAny:
			kept[name] = inner
			continue
		default:
			continue
		}
		checked, err := property.value(join(where, name), inner)
		if err != nil {
			return nil, err
		}
		kept[name] = checked
	}
	return kept, nil
}

func (r *rule) array(where string, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, &Fault{where, "must be a list"}
	}
	if err := r.size(where, len(list)); err != nil {
		return nil, err
	}
	kept := make([]any, 0, len(list))
	for i, inner := range list {
		checked, err := r.items.value(fmt.Sprintf("%s[%d]", where, i), inner)
		if err != nil {
			return nil, err
		}
		kept = append(kept, checked)
	}
	return kept, nil
}

func (r *rule) size(where string, n int) error {
	switch {
	case r.MinItems != nil && n < *r.MinItems:
		return &Fault{where, fmt.Sprintf("needs at least %d", *r.MinItems)}
	case r.MaxItems != nil && n > *r.MaxItems:
		return &Fault{where, fmt.Sprintf("may hold at most %d, not %d", *r.MaxItems, n)}
	}
	return nil
}

// text checks a string's length, enum, pattern and format.
func (r *rule) text(where, text string) error {
	length := utf8.RuneCountInString(text)
	switch {
	case r.MinLength != nil && length < *r.MinLength:
		if length == 0 {
			return &Fault{where, "must not be empty"}
		}
		return &Fault{where, fmt.Sprintf("must have at least %d characters", *r.MinLength)}
	case r.MaxLength != nil && length > *r.MaxLength:
		return &Fault{where, fmt.Sprintf("may have at most %d characters, not %d", *r.MaxLength, length)}
	case len(r.Enum) > 0 && !slices.Contains(r.Enum, text):
		return &Fault{where, "must be one of " + strings.Join(r.Enum, ", ")}
	case r.pattern != nil && !r.pattern.MatchString(text):
		return &Fault{where, "must match " + r.Pattern}
	case r.Format == "date-time" && !isTime(text):
		return &Fault{where, "must be a time as 2026-01-02T15:04:05Z; in a query a + is written %2B"}
	case r.Format == "uuid" && !isUUID(text):
		return &Fault{where, "must be a UUID"}
	}
	return nil
}

// number checks the written form of a number, so that no precision is lost on the way.
func (r *rule) number(where, written string) error {
	if r.Type == "number" {
		if _, err := strconv.ParseFloat(written, 64); err != nil {
			return &Fault{where, "must be a number"}
		}
		return nil
	}
	bits := 64
	if r.Format == "int32" {
		bits = 32
	}
	n, err := strconv.ParseInt(written, 10, bits)
	switch {
	case err != nil:
		return &Fault{where, fmt.Sprintf("must be a whole number that fits in %d bits", bits)}
	case r.Minimum != nil && n < *r.Minimum:
		return &Fault{where, fmt.Sprintf("must be at least %d", *r.Minimum)}
	case r.Maximum != nil && n > *r.Maximum:
		return &Fault{where, fmt.Sprintf("must be at most %d", *r.Maximum)}
	}
	return nil
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// isUUID accepts the 8-4-4-4-12 form in hexadecimal only.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, r := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return false
		}
	}
	return true
}

func join(where, name string) string {
	if where == "" {
		return name
	}
	return where + "." + name
}
