package placement

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// Ways of billing.
const (
	BillSession     = "session"     // a flat price for each hour of a sandbox, whatever its size
	BillProvisioned = "provisioned" // for the size, for as long as the sandbox lives
	BillActiveCPU   = "active_cpu"  // CPU only while it is busy, memory for as long as the sandbox lives
)

// defaultCPUActive is the share of time with a busy CPU that is assumed where nobody says anything, and those
// of the shapes of work.
const (
	defaultCPUActive   = 0.5
	burstyCPUActive    = 0.1
	longLivedCPUActive = 0.8
)

// Price is how a pool bills, in US dollars. The zero value means that the price is not known.
type Price struct {
	Billing string `json:"billing,omitempty"`
	// SessionHour is the price of an hour with BillSession; 0 is free, as one's own machines are.
	SessionHour   float64 `json:"sessionHour,omitempty"`
	CPUHour       float64 `json:"cpuHour,omitempty"`       // for each virtual CPU
	MemoryGiBHour float64 `json:"memoryGiBHour,omitempty"` // for each GiB
	DiskGiBHour   float64 `json:"diskGiBHour,omitempty"`
	DiskFreeGiB   float64 `json:"diskFreeGiB,omitempty"`
	// GPUHour is the price of one GPU, by kind.
	GPUHour   map[string]float64 `json:"gpuHour,omitempty"`
	PerCreate float64            `json:"perCreate,omitempty"`
	// CPUActive is the assumed share of time with a busy CPU, 0 to 1; 0: the default of one half.
	CPUActive float64 `json:"cpuActive,omitempty"`
	// Source and Date say where the prices are from.
	Source string `json:"source,omitempty"`
	Date   string `json:"date,omitempty"`
}

func (p Price) check() error {
	switch p.Billing {
	case "", BillSession, BillProvisioned, BillActiveCPU:
	default:
		return fmt.Errorf("billing %q is none of %s, %s, %s", p.Billing, BillSession, BillProvisioned, BillActiveCPU)
	}
	rates := []float64{p.SessionHour, p.CPUHour, p.MemoryGiBHour, p.DiskGiBHour, p.DiskFreeGiB, p.PerCreate, p.CPUActive}
	for _, rate := range p.GPUHour {
		rates = append(rates, rate)
	}
	for _, rate := range rates {
		if rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
			return fmt.Errorf("a price is negative or no number")
		}
	}
	if p.CPUActive > 1 {
		return fmt.Errorf("the CPU-active share is %v: it goes from 0 to 1", p.CPUActive)
	}
	return nil
}

// Cost is an estimate of what a sandbox costs, in US dollars. It is never the bill.
type Cost struct {
	Estimate bool   `json:"estimate"` // always true
	Currency string `json:"currency"` // always USD
	// Hour is the likely price of an hour; Low and High bound it: a CPU that is always idle, and one that is
	// always busy.
	Hour float64 `json:"hour"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Life is the likely price of the create's whole time to live, the create itself included; LifeLow and
	// LifeHigh bound it: an idle sandbox that is killed at once, and a busy one that stays to the end.
	Life     float64 `json:"life"`
	LifeLow  float64 `json:"lifeLow"`
	LifeHigh float64 `json:"lifeHigh"`
	// Assumes says what the figures rest on: list prices, without credits, discounts, taxes and traffic.
	Assumes Assumptions `json:"assumes"`
}

// Assumptions are what an estimate rests on.
type Assumptions struct {
	Billing string `json:"billing"`
	// CPUActive is the share of time with a busy CPU, 0 to 1.
	CPUActive float64 `json:"cpuActive"`
	// LifeSeconds is the time to live.
	LifeSeconds float64            `json:"lifeSeconds"`
	Size        adapters.Resources `json:"size"`
	GPU         *GPU               `json:"gpu,omitempty"`
	// Source and Date say where the prices are from.
	Source string `json:"source,omitempty"`
	Date   string `json:"date,omitempty"`
}

// Estimate returns what a sandbox of a size would cost for a time; nil when the price is not known. gpu may be
// empty; its Max is the number of them. active is the share of time with a busy CPU, 0 to 1.
func (p *Price) Estimate(size adapters.Resources, gpu GPU, life time.Duration, active float64) *Cost {
	if p.Billing == "" {
		return nil
	}
	gpuHour, priced := p.GPUHour[strings.ToLower(gpu.Kind)]
	if gpu.Kind != "" && !priced && p.Billing != BillSession {
		return nil
	}
	const gib = 1024
	var fixed, cpu float64
	if p.Billing == BillSession {
		fixed = p.SessionHour
	} else {
		cpu = float64(size.CPU) * p.CPUHour
		fixed = float64(size.MemoryMB) / gib * p.MemoryGiBHour
		fixed += max(0, float64(size.DiskMB)/gib-p.DiskFreeGiB) * p.DiskGiBHour
	}
	fixed += gpuHour * float64(max(gpu.Max, 1))
	c := Cost{Estimate: true, Currency: "USD", Low: fixed, Hour: fixed + active*cpu, High: fixed + cpu}
	if p.Billing != BillActiveCPU {
		c.Low, c.Hour = c.High, c.High
	}
	hours := life.Hours()
	c.Life, c.LifeLow, c.LifeHigh = p.PerCreate+hours*c.Hour, p.PerCreate, p.PerCreate+hours*c.High
	c.Assumes = Assumptions{Billing: p.Billing, CPUActive: active, LifeSeconds: life.Seconds(), Size: size, Source: p.Source, Date: p.Date}
	if gpu.Kind != "" {
		c.Assumes.GPU = &gpu
	}
	return &c
}

// cpuActive is the share that a request's costs are estimated with: its own word, then the shape of its work,
// then what the operator assumes for the pool.
func cpuActive(r *Requirements, p *Price) float64 {
	switch {
	case r.CPUActive > 0:
		return float64(r.CPUActive) / 100
	case r.Workload == workloadBursty:
		return burstyCPUActive
	case r.Workload == workloadLongLived:
		return longLivedCPUActive
	case p.CPUActive > 0:
		return p.CPUActive
	}
	return defaultCPUActive
}
