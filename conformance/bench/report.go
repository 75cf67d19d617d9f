package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Report is everything that one run has found.
type Report struct {
	Made    time.Time `json:"made"`
	Machine Machine   `json:"machine"`
	Scale   Scale     `json:"scale"`
	// Windows say how busy others kept the machine before each group of figures.
	Windows []Window `json:"windows"`
	Figures []Figure `json:"figures"`
	Ratios  []Ratio  `json:"ratios"`
	// Absent are comparisons that were not made, with the reason.
	Absent []string `json:"absent,omitempty"`
}

// Machine is where a run was made.
type Machine struct {
	Kernel     string `json:"kernel"`
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	Go         string `json:"go"`
}

// Scale is how much is done.
type Scale struct {
	// Calls of each target for one latency, Rounds of each target for one rate.
	Calls, Rounds int
	// Crowds are the numbers of commands at once.
	Crowds []int
	// Output is what a command prints, Files what is carried up and down, in bytes.
	Output int64
	Files  []int64
	// Small is how many small files are written and read.
	Small int
	// Streams are open at once when their memory is measured.
	Streams int
	// Sequential creates, one after the other; Burst, at once; Idle sandboxes that do nothing.
	Sequential, Burst, Idle int
	// Patience bounds the waiting for a quiet second before each group.
	Patience time.Duration
}

// Full is the scale of the figures in the documentation.
func Full() Scale {
	return Scale{
		Calls: 1000, Rounds: 7, Crowds: []int{25, 200}, Output: 256 << 20, Files: []int64{32 << 20, 1 << 30}, Small: 1000,
		Streams: 200, Sequential: 40, Burst: 100, Idle: 1000, Patience: 30 * time.Second,
	}
}

// Short is a scale for a few minutes: the same figures from fewer calls, and no file of a gibibyte.
func Short() Scale {
	return Scale{
		Calls: 300, Rounds: 5, Crowds: []int{25}, Output: 128 << 20, Files: []int64{32 << 20, 256 << 20}, Small: 200,
		Streams: 100, Sequential: 20, Burst: 100, Idle: 300, Patience: 3 * time.Second,
	}
}

// Smoke is a scale that only shows that everything can be measured.
func Smoke() Scale {
	return Scale{
		Calls: 5, Rounds: 1, Crowds: []int{5}, Output: 2 << 20, Files: []int64{1 << 20}, Small: 20,
		Streams: 5, Sequential: 2, Burst: 3, Idle: 3,
	}
}

// NewReport begins a report of this machine.
func NewReport(scale Scale) *Report {
	return &Report{Made: time.Now().UTC().Truncate(time.Second), Scale: scale, Machine: Machine{
		Kernel: firstWith("/proc/version", "Linux version "), Processor: firstWith("/proc/cpuinfo", "model name"),
		Processors: runtime.NumCPU(), Go: runtime.Version(),
	}}
}

// firstWith returns the word, or the value, that follows in a file of the kernel's.
func firstWith(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), name)
	line, _, _ := strings.Cut(rest, "\n")
	if _, value, found := strings.Cut(line, ": "); found {
		return value
	}
	word, _, _ := strings.Cut(line, " ")
	return word
}

// Leave notes a comparison that was not made.
func (r *Report) Leave(what string, why any) {
	r.Absent = append(r.Absent, fmt.Sprintf("%s: %v", what, why))
}

// Add notes a figure.
func (r *Report) Add(f Figure) { r.Figures = append(r.Figures, f) }

func (r *Report) add(name, target, unit string, value float64, of int) {
	r.Add(Figure{Name: name, Target: target, Unit: unit, Value: value, Of: of})
}

// Value returns a figure.
func (r *Report) Value(name, target string) (float64, bool) {
	for _, f := range r.Figures {
		if f.Name == name && f.Target == target {
			return f.Value, true
		}
	}
	return 0, false
}

// AtMost notes the ratio of a figure of two targets, which should not exceed the bound.
func (r *Report) AtMost(bound float64, name, one, other string) {
	r.compare(name, one, other, bound, false)
}

// AtLeast notes one that should reach it.
func (r *Report) AtLeast(bound float64, name, one, other string) {
	r.compare(name, one, other, bound, true)
}

func (r *Report) compare(name, one, other string, bound float64, atLeast bool) {
	a, hasA := r.Value(name, one)
	b, hasB := r.Value(name, other)
	if !hasA || !hasB || b == 0 {
		return
	}
	r.Ratios = append(r.Ratios, Ratio{Name: name + ": " + one + " by " + other, Value: a / b, Bound: bound, AtLeast: atLeast})
}

// Added compares what two ways add to a third, straight one.
func (r *Report) Added(bound float64, name, one, other, straight string) {
	a, hasA := r.Value(name, one)
	b, hasB := r.Value(name, other)
	s, hasS := r.Value(name, straight)
	if !hasA || !hasB || !hasS || b <= s {
		return
	}
	r.Ratios = append(r.Ratios, Ratio{Name: name + ", added: " + one + " by " + other, Value: (a - s) / (b - s), Bound: bound})
}

// Bound holds one figure against a bound of its own unit.
func (r *Report) Bound(most float64, name, target string) {
	if value, there := r.Value(name, target); there {
		r.Ratios = append(r.Ratios, Ratio{Name: name + ", " + target, Value: value, Bound: most})
	}
}
