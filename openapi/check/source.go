package check

import "fmt"

// source and the types below are the document as it is written, as far as checking needs it.
type source struct {
	Paths      map[string]pathItem   `yaml:"paths"`
	Components components            `yaml:"components"`
	Security   []map[string][]string `yaml:"security"`
}

type components struct {
	Schemas    map[string]schema       `yaml:"schemas"`
	Parameters map[string]rawParameter `yaml:"parameters"`
}

type pathItem struct {
	Parameters []rawParameter `yaml:"parameters"`
	Get        *rawOperation  `yaml:"get"`
	Post       *rawOperation  `yaml:"post"`
	Put        *rawOperation  `yaml:"put"`
	Patch      *rawOperation  `yaml:"patch"`
	Delete     *rawOperation  `yaml:"delete"`
}

func (p pathItem) methods() map[string]*rawOperation {
	all := map[string]*rawOperation{"GET": p.Get, "POST": p.Post, "PUT": p.Put, "PATCH": p.Patch, "DELETE": p.Delete}
	for method, op := range all {
		if op == nil {
			delete(all, method)
		}
	}
	return all
}

type rawOperation struct {
	ID         string                 `yaml:"operationId"`
	Served     bool                   `yaml:"x-isthmus-served"`
	Security   *[]map[string][]string `yaml:"security"`
	Parameters []rawParameter         `yaml:"parameters"`
	Body       *rawBody               `yaml:"requestBody"`
}

type rawParameter struct {
	Ref      string  `yaml:"$ref"`
	Name     string  `yaml:"name"`
	In       string  `yaml:"in"`
	Required bool    `yaml:"required"`
	Explode  *bool   `yaml:"explode"`
	Schema   *schema `yaml:"schema"`
}

type rawBody struct {
	Required bool `yaml:"required"`
	Content  map[string]struct {
		Schema schema `yaml:"schema"`
	} `yaml:"content"`
}

type schema struct {
	Ref         string            `yaml:"$ref"`
	Type        string            `yaml:"type"`
	Format      string            `yaml:"format"`
	Pattern     string            `yaml:"pattern"`
	Nullable    bool              `yaml:"nullable"`
	Enum        []string          `yaml:"enum"`
	Required    []string          `yaml:"required"`
	Properties  map[string]schema `yaml:"properties"`
	Additional  *additional       `yaml:"additionalProperties"`
	Items       *schema           `yaml:"items"`
	AllOf       []schema          `yaml:"allOf"`
	Minimum     *int64            `yaml:"minimum"`
	Maximum     *int64            `yaml:"maximum"`
	MinLength   *int              `yaml:"minLength"`
	MaxLength   *int              `yaml:"maxLength"`
	MinItems    *int              `yaml:"minItems"`
	MaxItems    *int              `yaml:"maxItems"`
	UniqueItems bool              `yaml:"uniqueItems"`

	OneOf []schema `yaml:"oneOf"`
	AnyOf []schema `yaml:"anyOf"`
	Not   *schema  `yaml:"not"`
}

// additional is additionalProperties: a boolean or a schema.
type additional struct {
	any    bool
	schema *schema
}

// UnmarshalYAML reads both forms.
func (a *additional) UnmarshalYAML(decode func(any) error) error {
	if decode(&a.any) == nil {
		return nil
	}
	a.schema = new(schema)
	if err := decode(a.schema); err != nil {
		return fmt.Errorf("additionalProperties: %w", err)
	}
	return nil
}
