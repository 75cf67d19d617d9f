package placement

import (
	"encoding/json"
	"strings"
	"time"
)

// Requirements are what a sandbox needs of the place where it runs, and what is preferred among the places
// that have it. The zero value asks for nothing. Every field is one key of the grammar, or a few of a kind;
// what each means is in the table of Keys.
type Requirements struct {
	// Provider, Fallback and Pools name the destination: see candidates.go.
	Provider string
	Fallback []string
	Pools    []string

	// Regions are groups: of each group the place must lie in one region. One layer states one group or
	// several; a binding layer's groups are joined by those of later layers.
	Regions [][]string

	Isolation string
	// VerifiedIsolation asks that the isolation was measured, not only reported by the provider.
	VerifiedIsolation Flag

	CPU      int // whole virtual CPUs, at least
	MemoryMB int // MiB, at least
	DiskMB   int // MiB, at least
	// GPU lists kinds of which one will do; "any" stands for all. GPUCount is at least 1 when set.
	GPU      []string
	GPUCount int
	Lifetime time.Duration // the place must let a sandbox live this long
	Limits   []string      // the ceilings that the place must enforce
	Network  []string      // what the place must be able to do to the network
	Labels   []string      // all of them must be on the pool

	// Pause and Snapshot are the lowest level that will do: filesystem or memory.
	Pause, Snapshot string
	// Features are the keys that are on or off, by key.
	Features map[string]Flag

	Rank      []string
	Near      []string // regions that are preferred
	Workload  string
	CPUActive int // the assumed share of time with a busy CPU, in percent, 1 to 100

	Affinity, AffinityMode string
	Spread, SpreadMode     string

	// Class is the named workload class that was used; its requirements are folded in.
	Class string
	// IdempotencyKey makes a repeated create return the first one's sandbox.
	IdempotencyKey string
}

// Flag is a switch that may be unset.
type Flag string

// The values of a Flag. FlagOff means "not needed", not "must not be there".
const (
	FlagUnset Flag = ""
	FlagOn    Flag = "true"
	FlagOff   Flag = "false"
)

// Pairs returns the requirements in the grammar's canonical form, by key. What is unset is left out.
func (r Requirements) Pairs() map[string]string {
	pairs := map[string]string{}
	for _, k := range grammar() {
		if text := k.text(&r); text != "" {
			pairs[k.Name] = text
		}
	}
	return pairs
}

// String returns the requirements as one header value: what Parse reads back to the same requirements.
func (r Requirements) String() string {
	var b strings.Builder
	for _, k := range grammar() {
		if text := k.text(&r); text != "" {
			if b.Len() > 0 {
				b.WriteString("; ")
			}
			b.WriteString(k.Name + "=" + text)
		}
	}
	return b.String()
}

// MarshalJSON writes the pairs, so that a record reads as the client would have written it.
func (r Requirements) MarshalJSON() ([]byte, error) { return json.Marshal(r.Pairs()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Requirements) UnmarshalJSON(text []byte) error {
	var pairs map[string]string
	if err := json.Unmarshal(text, &pairs); err != nil {
		return err
	}
	read, err := FromPairs(Header, pairs, nil)
	if err != nil {
		return err
	}
	*r = read
	return nil
}
