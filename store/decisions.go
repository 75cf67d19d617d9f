package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/isthmus/isthmus/store/kv"
)

// decisionPrefix is followed by the sandbox's id.
const decisionPrefix = "decision/"

// DecisionLife is how long after its create it is known why a sandbox is where it is.
const DecisionLife = 72 * time.Hour

// Decisions keeps how it was decided where sandboxes go, also of creates that came to nothing. What is in a record
// is the business of whoever writes it.
type Decisions struct {
	engine kv.Engine
}

// Put writes the decision of one sandbox. On a disk that is almost full it does not.
func (d Decisions) Put(ctx context.Context, id string, decision json.RawMessage) error {
	if d.engine.Low() {
		return nil
	}
	return d.engine.Update(ctx, func(tx kv.Tx) error { return save(tx, decisionPrefix+id, decision, DecisionLife) })
}

// Get returns the decision of one sandbox, or ErrNotFound.
func (d Decisions) Get(ctx context.Context, id string) (json.RawMessage, error) {
	var decision json.RawMessage
	err := d.engine.View(ctx, func(r kv.Reader) (err error) {
		decision, err = load[json.RawMessage](r, decisionPrefix+id)
		return err
	})
	return decision, err
}
