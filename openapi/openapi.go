// Package openapi is the contract of the control plane: our own OpenAPI text of every operation that a
// published E2B client can send, and the echo server and models that oapi-codegen makes from it.
//
// The document is the only place where a request's shape is stated: openapi/check reads it to enforce what
// generated code does not (required fields, ranges, enums, patterns).
package openapi

import _ "embed"

//go:embed openapi.yaml
var document string

//go:embed isthmus.yaml
var administration string

// Administration returns the OpenAPI text of the operator's own interface, as YAML.
func Administration() string { return administration }

// Document returns the OpenAPI text, as YAML.
func Document() string { return document }
