package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Path checks one path parameter's unescaped value.
func (o *Operation) Path(name, value string) error {
	for _, p := range o.path {
		if p.name == name {
			return p.rule.written(name, value)
		}
	}
	return nil
}

// Query checks the raw query and returns it in the form that the generated code can bind: repeated keys of
// a list joined by commas, lists and texts that are empty left out, unknown keys left out.
func (o *Operation) Query(raw string) (url.Values, error) {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &Fault{"query", "cannot be read: percent-encode its values"}
	}
	kept := url.Values{}
	for _, p := range o.query {
		values := slices.DeleteFunc(slices.Clone(given[p.name]), func(v string) bool { return v == "" && p.rule.emptyIsAbsent() })
		if len(values) == 0 {
			if p.required {
				return nil, &Fault{p.name, "is required in the query"}
			}
			continue
		}
		if p.rule.Type != "array" && len(values) > 1 {
			return nil, &Fault{p.name, "is given more than once in the query"}
		}
		joined := strings.Join(values, ",")
		if err := p.rule.written(p.name, joined); err != nil {
			return nil, err
		}
		kept.Set(p.name, joined)
	}
	return kept, nil
}

// Header checks the header parameters.
func (o *Operation) Header(header http.Header) error {
	for _, p := range o.header {
		values := header.Values(p.name)
		switch {
		case len(values) == 0 && p.required:
			return &Fault{"header " + p.name, "is required"}
		case len(values) > 1:
			return &Fault{"header " + p.name, "is given more than once"}
		case len(values) == 1:
			if err := p.rule.written("header "+p.name, values[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// HasBody tells whether the operation takes a JSON body.
func (o *Operation) HasBody() bool { return o.body != nil }

// Body checks a JSON body and returns it with nothing in it that the document does not name. An empty body,
// where it may be one, is returned as an empty object.
func (o *Operation) Body(text []byte) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		if o.bodyRequired {
			return nil, &Fault{"the body", "is required: send a JSON object"}
		}
		return []byte("{}"), nil
	}
	value, err := decode(text)
	if err != nil {
		return nil, err
	}
	if value == nil && !o.bodyRequired {
		return []byte("{}"), nil
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, &Fault{"the body", "must be a JSON object"}
	}
	kept, err := o.body.value("", value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(kept)
}

// decode reads exactly one JSON value.
func decode(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, &Fault{"the body", "is not UTF-8"}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, &Fault{"the body", "is not valid JSON: " + problem(err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &Fault{"the body", "has something behind its JSON value"}
	}
	return value, nil
}

func problem(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return err.Error()
}

// written checks a value as it is written in a path, a query or a header.
func (r *rule) written(where, text string) error {
	switch r.Type {
	case "integer", "number":
		return r.number(where, text)
	case "boolean":
		if text != "true" && text != "false" {
			return &Fault{where, "must be true or false"}
		}
		return nil
	case "array":
		return r.list(where, strings.Split(text, ","))
	}
	return r.text(where, text)
}

func (r *rule) list(where string, items []string) error {
	if r.UniqueItems {
		items = slices.Compact(slices.Sorted(slices.Values(items)))
	}
	if err := r.size(where, len(items)); err != nil {
		return err
	}
	for _, item := range items {
		if err := r.items.written(where, item); err != nil {
			return err
		}
	}
	return nil
}

// emptyIsAbsent tells whether "name=" in a query means the same as leaving it out: for lists and texts,
// which clients write so when a filter is not set.
func (r *rule) emptyIsAbsent() bool { return r.Type == "array" || r.Type == "string" }
