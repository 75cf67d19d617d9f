package store

import "time"

// Metric is one sample of a sandbox, as it is shown.
type Metric struct {
	At         time.Time `json:"at"`
	CPUCount   int       `json:"cpuCount"`
	CPUUsedPct float64   `json:"cpuUsedPct"` // of all its CPUs together, 0 to 100
	MemUsed    int64     `json:"memUsed"`    // bytes
	MemTotal   int64     `json:"memTotal"`
	MemCache   int64     `json:"memCache"`
	DiskUsed   int64     `json:"diskUsed"`
	DiskTotal  int64     `json:"diskTotal"`
}
