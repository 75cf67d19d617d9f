// Package fault wraps a provider and breaks it by a plan: it is a test tool, and how an operator rehearses what
// a cloud does on a bad day without one. A fault is injected before or after the real call, so that what the
// fleet sees is what it would see: a box whose answer was lost is really there.
//
// docs/fault.md is its manual.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// Fault is a way to break.
type Fault string

// The faults. What each does is in the table of docs/fault.md.
const (
	Capacity    Fault = "capacity"     // there is no room; nothing is made
	RateLimited Fault = "rate_limited" // 429, with Rule.RetryAfter
	Outage      Fault = "outage"       // the provider cannot be reached; nothing happens
	Hang        Fault = "hang"         // no answer until the caller gives up; nothing happens
	Slow        Fault = "slow"         // the call is made after Rule.Delay
	LostAnswer  Fault = "lost_answer"  // the call is made, its answer is not known
	WrongSize   Fault = "wrong_size"   // the box is made with half of the processors, memory and disk
	Dies        Fault = "dies"         // the box is made, and ends by itself after Rule.Delay
)

// Call names a call to the provider.
type Call string

// The calls.
const (
	Resolve Call = "resolve"
	Create  Call = "create"
	Get     Call = "get"
	List    Call = "list"
	Destroy Call = "destroy"
	Reach   Call = "reach"
	Dial    Call = "dial" // a connection into a box, where the provider gives a dialer
	Extend  Call = "extend"
	Measure Call = "measure"
	Entries Call = "entries"
	Stock   Call = "stock"
	Claim   Call = "claim"
	Unstock Call = "unstock"
	Put     Call = "put"
	Exec    Call = "exec"
	Native  Call = "native"

	Pause      Call = "pause"
	Resume     Call = "resume"
	Snapshot   Call = "snapshot"
	Snapshots  Call = "snapshots" // the list of them
	Forget     Call = "forget"
	SetNetwork Call = "set_network"
)

// Plan says what breaks when. The zero plan breaks nothing.
type Plan struct {
	// Seed makes the dice of Rule.Share the same in every run.
	Seed uint64 `yaml:"seed"`
	// Rules are asked in order for each call; the first that strikes decides.
	Rules []Rule `yaml:"rules"`
}

// Rule is one fault and when it strikes.
type Rule struct {
	Fault Fault `yaml:"fault"`
	// Calls are those that it strikes; none: those that the fault makes sense for.
	Calls []Call `yaml:"calls"`
	// Share is the part of the calls that it strikes, above 0 up to 1; 0: all.
	Share float64 `yaml:"share"`
	// Skip lets so many matching calls through first, Times ends the rule after so many strikes; 0: never.
	Skip  int `yaml:"skip"`
	Times int `yaml:"times"`
	// Delay is that of slow and dies, RetryAfter that of rate_limited.
	Delay      time.Duration `yaml:"delay"`
	RetryAfter time.Duration `yaml:"retryAfter"`
}

// Parse reads a plan as YAML, and names everything that is wrong with it.
func Parse(text []byte) (Plan, error) {
	var plan Plan
	if err := yaml.UnmarshalWithOptions(text, &plan, yaml.Strict()); err != nil {
		return Plan{}, fmt.Errorf("the plan of faults: %w", err)
	}
	return plan, plan.Check()
}

// Check names everything that is wrong with a plan.
func (p Plan) Check() error {
	var wrong []error
	for i, rule := range p.Rules {
		note := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("rule %d of the plan of faults: "+format, append([]any{i + 1}, args...)...))
		}
		allowed, known := strikes(rule.Fault)
		if !known {
			note("%q is no fault", rule.Fault)
			continue
		}
		for _, call := range rule.Calls {
			if !slices.Contains(allowed, call) {
				note("%s cannot strike the call %q: it can strike %v", rule.Fault, call, allowed)
			}
		}
		if rule.Share < 0 || rule.Share > 1 {
			note("share must be from 0 to 1")
		}
		if rule.Skip < 0 || rule.Times < 0 || rule.Delay < 0 || rule.RetryAfter < 0 {
			note("skip, times, delay and retryAfter must not be negative")
		}
		if rule.Fault == Slow && rule.Delay == 0 {
			note("slow needs a delay")
		}
	}
	return errors.Join(wrong...)
}

// strikes lists the calls that a fault can strike.
func strikes(f Fault) (calls []Call, known bool) {
	switch f {
	case Capacity, WrongSize, Dies:
		return []Call{Create}, true
	case LostAnswer:
		return []Call{Create, Destroy, Extend, Claim, Pause, Resume, Snapshot, Forget, SetNetwork}, true
	case RateLimited, Outage, Hang, Slow:
		return []Call{Resolve, Create, Get, List, Destroy, Reach, Dial, Extend, Measure, Entries, Stock, Claim, Unstock, Put, Exec, Native,
			Pause, Resume, Snapshot, Snapshots, Forget, SetNetwork}, true
	}
	return nil, false
}

// natural lists the calls that a rule without calls strikes.
func natural(f Fault) []Call {
	if f == LostAnswer || f == Slow {
		return []Call{Create}
	}
	calls, _ := strikes(f)
	return calls
}
