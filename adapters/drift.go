package adapters

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Drift is the mark on one capability of a pool: what the provider answered to an operation was not understood, so
// that what is declared of the capability is in doubt.
type Drift struct {
	Feature Feature `json:"feature"`
	// Operation is the call of the contract, as fault plans name it.
	Operation string `json:"operation"`
	// Declared is the value that the capability has by declaration.
	Declared string `json:"declared"`
	// Drifted is false once an answer to the same operation was understood again, at Understood.
	Drifted    bool      `json:"drifted"`
	Understood time.Time `json:"understood,omitzero"`
	// First and Last are when answers were not understood, Times how many in that time.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Times int64     `json:"times"`
	// Total is how many since the process started.
	Total int64 `json:"total"`
	// Reason is the adapter's for the last one: at most 300 bytes, and no secret.
	Reason string `json:"reason"`
}

// drifts are the marks of one pool. There are at most as many as operations and features.
type drifts struct {
	mu    sync.Mutex
	marks []Drift
}

// mark notes an answer that was not understood. anew says that the capability was not in doubt before.
func (d *drifts) mark(operation string, feature Feature, declared, reason string) (mark Drift, anew bool) {
	now := time.Now().UTC().Truncate(time.Second)
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.marks, func(m Drift) bool { return m.Operation == operation && m.Feature == feature })
	if at < 0 {
		at = len(d.marks)
		d.marks = append(d.marks, Drift{Feature: feature, Operation: operation, Declared: declared})
	}
	one := &d.marks[at]
	if anew = !one.Drifted; anew {
		one.Drifted, one.Understood, one.First, one.Times = true, time.Time{}, now, 0
	}
	one.Last, one.Reason = now, reason
	one.Times++
	one.Total++
	return *one, anew
}

// clear takes the marks off that an operation left, and returns those that it took off.
func (d *drifts) clear(operation string) []Drift {
	d.mu.Lock()
	defer d.mu.Unlock()
	var cleared []Drift
	for i := range d.marks {
		if one := &d.marks[i]; one.Operation == operation && one.Drifted {
			one.Drifted, one.Understood = false, time.Now().UTC().Truncate(time.Second)
			cleared = append(cleared, *one)
		}
	}
	return cleared
}

// list returns the marks by feature and operation, those that were taken off too.
func (d *drifts) list() []Drift {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(slices.Values(d.marks), func(a, b Drift) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Operation, b.Operation))
	})
}
