package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rule is a schema with its references resolved and its patterns compiled.
type rule struct {
	schema
	pattern    *regexp.Regexp
	properties map[string]*rule
	required   []string
	items      *rule
	extra      *rule // what other properties must be; nil: they are dropped
	extraAny   bool  // other properties may be anything
}

// parameter is one parameter of the path, the query or the headers.
type parameter struct {
	name     string
	required bool
	rule     *rule
}

type compiler struct {
	components components
}

func (c *compiler) operation(path, method string, item pathItem, raw *rawOperation, security []map[string][]string) (*Operation, error) {
	op := &Operation{ID: raw.ID, Method: method, Route: route(path), Served: raw.Served}
	if raw.Security != nil {
		security = *raw.Security
	}
	for _, alternative := range security {
		for name := range alternative {
			op.Schemes = append(op.Schemes, name)
		}
	}
	for _, p := range slices.Concat(item.Parameters, raw.Parameters) {
		if err := c.parameter(op, p); err != nil {
			return nil, err
		}
	}
	if raw.Body == nil {
		return op, nil
	}
	content, ok := raw.Body.Content["application/json"]
	if !ok {
		return op, nil // a raw upload: its handler streams it
	}
	op.bodyRequired = raw.Body.Required
	var err error
	op.body, err = c.rule(content.Schema)
	return op, err
}

func (c *compiler) parameter(op *Operation, raw rawParameter) error {
	if name, ok := strings.CutPrefix(raw.Ref, "#/components/parameters/"); ok {
		raw, ok = c.components.Parameters[name]
		if !ok {
			return fmt.Errorf("parameter %s is not defined", name)
		}
	}
	if raw.Schema == nil || raw.Name == "" {
		return fmt.Errorf("parameter %q has no name or no schema", raw.Name)
	}
	compiled, err := c.rule(*raw.Schema)
	if err != nil {
		return fmt.Errorf("parameter %s: %w", raw.Name, err)
	}
	if compiled.Type == "array" && (raw.Explode == nil || *raw.Explode) {
		return fmt.Errorf("parameter %s: only comma-joined lists are known", raw.Name)
	}
	p := parameter{name: raw.Name, required: raw.Required, rule: compiled}
	switch raw.In {
	case "path":
		op.path = append(op.path, p)
	case "query":
		op.query = append(op.query, p)
	case "header":
		op.header = append(op.header, p)
	default:
		return fmt.Errorf("parameter %s is in %q, which is not known", raw.Name, raw.In)
	}
	return nil
}

func (c *compiler) rule(s schema) (*rule, error) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		target, ok := c.components.Schemas[name]
		if !ok {
			return nil, fmt.Errorf("schema %s is not defined", name)
		}
		return c.rule(target)
	}
	if len(s.OneOf)+len(s.AnyOf) > 0 || s.Not != nil {
		return nil, fmt.Errorf("oneOf, anyOf and not are not known")
	}
	compiled := &rule{schema: s, properties: map[string]*rule{}, required: slices.Clone(s.Required)}
	for _, part := range s.AllOf {
		if err := c.merge(compiled, part); err != nil {
			return nil, err
		}
	}
	return compiled, c.inner(compiled)
}

// merge adds one part of an allOf: objects only, as the generator flattens them too.
func (c *compiler) merge(into *rule, part schema) error {
	other, err := c.rule(part)
	if err != nil {
		return err
	}
	into.Type = other.Type
	into.required = append(into.required, other.required...)
	for name, property := range other.properties {
		into.properties[name] = property
	}
	return nil
}

// inner compiles what is inside a schema.
func (c *compiler) inner(r *rule) (err error) {
	for name, property := range r.Properties {
		if r.properties[name], err = c.rule(property); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if r.Items != nil {
		if r.items, err = c.rule(*r.Items); err != nil {
			return err
		}
	}
	if r.Additional != nil {
		r.extraAny = r.Additional.any
		if r.Additional.schema != nil {
			if r.extra, err = c.rule(*r.Additional.schema); err != nil {
				return err
			}
		}
	}
	if r.Pattern != "" {
		r.pattern, err = regexp.Compile(r.Pattern)
	}
	return err
}

func (r *rule) propertyNames(prefix string) []string {
	var names []string
	for name, property := range r.properties {
		if len(property.properties) > 0 {
			names = append(names, property.propertyNames(prefix+name+".")...)
			continue
		}
		names = append(names, prefix+name)
	}
	slices.Sort(names)
	return names
}

// route turns /a/{b} into /a/:b.
func route(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
