package vercel

import (
	"slices"
	"strings"
	"time"
)

// Plan are the limits of an account. The vendor moved them twice in two years, so they are data.
type Plan struct {
	Name string
	// MaxLife is the longest life of a session, MaxCPU the most vCPUs of one; each brings 2048 MiB of memory.
	MaxLife time.Duration
	MaxCPU  int
	// Concurrent sessions at a time.
	Concurrent int
}

// Plans are the published ones, as of limitsDate.
func Plans() []Plan {
	return []Plan{
		{Name: "hobby", MaxLife: 45 * time.Minute, MaxCPU: 4, Concurrent: 10},
		{Name: "pro", MaxLife: 24 * time.Hour, MaxCPU: 8, Concurrent: 2000},
		{Name: "enterprise", MaxLife: 24 * time.Hour, MaxCPU: 32, Concurrent: 2000},
	}
}

const (
	limitsSource = "https://vercel.com/docs/vercel-sandbox/pricing"
	limitsDate   = "2026-11-29"
	// memoryPerCPU is fixed by the vendor, in MiB.
	memoryPerCPU = 2048
)

func planOf(name string) (Plan, bool) {
	at := slices.IndexFunc(Plans(), func(p Plan) bool { return p.Name == name })
	if at < 0 {
		return Plan{}, false
	}
	return Plans()[at], true
}

func planNames() string {
	var names []string
	for _, p := range Plans() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// Rates are the vendor's published prices, in US dollars. It bills the CPU time that is used, and the memory for as
// long as a session lives: what a box costs depends on how busy it is, which is an assumption of whoever compares.
type Rates struct {
	CPUHour, MemoryGiBHour, PerCreate float64
	Source, Date                      string
}

// PublishedRates are those of the vendor's page.
func PublishedRates() Rates {
	return Rates{CPUHour: 0.128, MemoryGiBHour: 0.0212, PerCreate: 0.60 / 1e6, Source: limitsSource, Date: limitsDate}
}
