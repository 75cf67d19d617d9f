package daytona

// Rates are what Daytona takes in US dollars for the size of a sandbox, by the second, while it runs.
type Rates struct {
	CPUHour       float64 // of one virtual CPU
	MemoryGiBHour float64
	DiskGiBHour   float64 // also while it is stopped
	DiskFreeGiB   float64
	Source, Date  string
}

// PublishedRates are those of the vendor's page of prices.
func PublishedRates() Rates {
	return Rates{CPUHour: 0.0504, MemoryGiBHour: 0.0162, DiskGiBHour: 0.000108, DiskFreeGiB: 5, Source: "https://www.daytona.io/pricing", Date: checked}
}
