// Package check holds requests against the OpenAPI document: required fields, types, ranges, lengths,
// enums, patterns and formats of path, query, headers and JSON bodies. Generated code checks none of these.
//
// It knows the part of OpenAPI 3.0 that our document uses, and refuses to load a document that uses more,
// so that nothing which the text states is silently left unchecked.
package check

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// Document is the compiled document. It is read-only and safe for concurrent use.
type Document struct {
	operations map[string]*Operation
}

// Operation is one operation of the document.
type Operation struct {
	// ID is the operationId.
	ID string
	// Route is the path with parameters as :name, as the router prints it.
	Route string
	// Method is in capitals.
	Method string
	// Served tells whether x-isthmus-served is set.
	Served bool
	// Schemes names the security schemes, any of which is enough; none: no credentials are needed.
	Schemes []string

	path, query, header []parameter
	body                *rule
	bodyRequired        bool
}

// Fault is one thing that is wrong with a request.
type Fault struct {
	// Where names the field or parameter, for example "network.denyOut[2]".
	Where string
	// Problem says what is wrong with it, for example "must be a string".
	Problem string
}

// Error returns the place and the problem as one sentence.
func (f *Fault) Error() string { return strings.TrimSpace(f.Where + " " + f.Problem) }

// Load compiles a document from its YAML text.
func Load(text string) (*Document, error) {
	var source source
	if err := yaml.Unmarshal([]byte(text), &source); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	compiler := &compiler{components: source.Components}
	doc := &Document{operations: map[string]*Operation{}}
	for path, item := range source.Paths {
		for method, raw := range item.methods() {
			op, err := compiler.operation(path, method, item, raw, source.Security)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			doc.operations[key(method, op.Route)] = op
		}
	}
	return doc, nil
}

// Find returns the operation of a method and a route, the latter with parameters as :name.
func (d *Document) Find(method, route string) (*Operation, bool) {
	op, ok := d.operations[key(method, route)]
	return op, ok
}

// Operations returns all operations, in no order.
func (d *Document) Operations() []*Operation {
	all := make([]*Operation, 0, len(d.operations))
	for _, op := range d.operations {
		all = append(all, op)
	}
	return all
}

// Properties returns the names of the properties of an operation's body, those of objects inside it with
// their path, for example "network.allowOut". Properties of lists and maps are not followed.
func (o *Operation) Properties() []string {
	if o.body == nil {
		return nil
	}
	return o.body.propertyNames("")
}

func key(method, route string) string { return method + " " + route }
