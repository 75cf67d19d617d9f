package translate

import (
	"cmp"

	"github.com/isthmus/isthmus/translate/placement"
)

// Rules are what the operator says about where sandboxes go, beside the pools themselves. It is read-only.
type Rules struct {
	Classes placement.Classes
	// Keys are the policies of API keys, by the key's id or name.
	Keys map[string]placement.Requirements
	// Templates are requirements of templates, by the name that clients use.
	Templates map[string]placement.Requirements
}

// Caller is what a create comes with beside its body.
type Caller struct {
	KeyID, KeyName string
	// Require is the header X-Isthmus-Require; nil: there is none.
	Require *string
}

// Require puts what is required of the place into the request: policy, template, metadata and header, joined.
// The metadata itself stays as it was set. An unknown key, a wrong value and a contradiction are KindInvalid.
func Require(request *placement.Request, caller Caller, rules *Rules) error {
	metadata, err := placement.FromMetadata(request.Metadata, rules.Classes)
	if err != nil {
		return err
	}
	header, err := placement.Parse(placement.Header, given(caller.Require), rules.Classes)
	if err != nil {
		return err
	}
	policy, known := rules.Keys[caller.KeyID]
	if !known {
		policy = rules.Keys[caller.KeyName]
	}
	request.Require, err = placement.Merge(
		placement.Stated{From: placement.Policy, Requirements: policy},
		placement.Stated{From: placement.Template, Requirements: rules.Templates[request.Template]},
		placement.Stated{From: placement.Metadata, Requirements: metadata},
		placement.Stated{From: placement.Header, Requirements: header},
	)
	if err != nil {
		return err
	}
	key := request.Require.IdempotencyKey
	if key != "" && request.IdempotencyKey != "" && key != request.IdempotencyKey {
		return invalid("the header Idempotency-Key and the requirement idempotency-key contradict: send one of them")
	}
	request.IdempotencyKey = cmp.Or(request.IdempotencyKey, key)
	return nil
}
