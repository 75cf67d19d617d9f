package modal

// Rates are what Modal bills, in US dollars an hour.
type Rates struct {
	// CPUHour is the price of a virtual CPU: half of a physical core, which is what Modal counts.
	CPUHour, MemoryGiBHour float64
	// GPUHour is the price of one GPU by kind; kinds whose price is not known are left out.
	GPUHour map[string]float64
	// Source is where this is published, Date when it said so.
	Source, Date string
}

// PublishedRates are Modal's prices for sandboxes. What a box uses beyond what it asked for is billed too, but it is
// given no more.
func PublishedRates() Rates {
	return Rates{
		CPUHour: 0.0710, MemoryGiBHour: 0.0242,
		GPUHour: map[string]float64{"t4": 0.59, "l4": 0.80, "l40s": 1.95, "a100-80gb": 2.50, "h100": 3.95, "b200": 6.25},
		Source:  "https://modal.com/docs/guide/sandbox-resources", Date: sourceDate,
	}
}
