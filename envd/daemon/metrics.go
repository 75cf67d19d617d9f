package daemon

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd"
)

// metrics is upstream's answer of /metrics.
type metrics struct {
	Timestamp int64 `json:"ts"`
	CPUCount  int   `json:"cpu_count"`
	// CPUUsed is the share of all processors since the last call, in percent.
	CPUUsed     float64 `json:"cpu_used_pct"`
	MemTotalMiB uint64  `json:"mem_total_mib"`
	MemUsedMiB  uint64  `json:"mem_used_mib"`
	MemTotal    uint64  `json:"mem_total"`
	MemUsed     uint64  `json:"mem_used"`
	MemCache    uint64  `json:"mem_cache"`
	DiskUsed    uint64  `json:"disk_used"`
	DiskTotal   uint64  `json:"disk_total"`
}

// serveMetrics answers what the machine that the daemon sees is used for. The facade has better figures of its
// own for clients; these are for programs in the sandbox.
func (d *Daemon) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	m := metrics{Timestamp: time.Now().Unix(), CPUCount: runtime.NumCPU()}
	m.CPUUsed = d.load.percent(d.statPath())
	m.MemTotal, m.MemUsed, m.MemCache = d.memory()
	m.MemTotalMiB, m.MemUsedMiB = m.MemTotal>>20, m.MemUsed>>20
	m.DiskTotal, m.DiskUsed = d.disk()
	writeJSON(w, m)
}

// serveUsage answers the same to the facade, with processor time that adds up.
func (d *Daemon) serveUsage(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	u := envd.Usage{At: time.Now().UTC(), CPUCount: runtime.NumCPU()}
	busy, _ := processors(d.statPath())
	u.CPUTime = time.Duration(busy) * (time.Second / clockTicks)
	u.MemTotal, u.MemUsed, u.MemCache = d.memory()
	u.DiskTotal, u.DiskUsed = d.disk()
	d.kernel(&u)
	writeJSON(w, u)
}

// clockTicks is the unit of /proc/stat: the kernel shows hundredths of a second on every platform.
const clockTicks = 100

func (d *Daemon) statPath() string { return filepath.Join(d.options.Root, "proc/stat") }

// memory tells the box's memory, in bytes. Where the kernel tells that of a machine around the box, the processes
// are added up.
func (d *Daemon) memory() (total, used, cache uint64) {
	memory := meminfo(filepath.Join(d.options.Root, "proc/meminfo"))
	total = memory["MemTotal"]
	if d.boxMemory > 0 && d.boxMemory < total {
		return d.boxMemory, min(d.boxMemory, privateMemory(filepath.Join(d.options.Root, "proc"))), 0
	}
	return total, total - min(total, memory["MemAvailable"]), memory["Cached"] + memory["Buffers"] + memory["SReclaimable"]
}

// privateMemory is what all processes have for themselves, in bytes.
func privateMemory(proc string) uint64 {
	paths, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "statm"))
	pages := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var size, resident, shared int
		if _, scanErr := fmt.Sscan(string(text), &size, &resident, &shared); err == nil && scanErr == nil {
			pages += max(resident-shared, 0)
		}
	}
	return uint64(pages) * uint64(os.Getpagesize())
}

// disk tells the box's disk, in bytes. Where the file system tells of a disk around the box, the files are added up.
func (d *Daemon) disk() (total, used uint64) {
	var disk unix.Statfs_t
	if unix.Statfs(d.options.Root, &disk) != nil {
		return 0, 0
	}
	block := uint64(disk.Bsize)
	total = disk.Blocks * block
	if d.boxDisk > 0 && d.boxDisk < total {
		return d.boxDisk, min(d.boxDisk, d.space.count(d.options.Root))
	}
	return total, total - min(total, disk.Bavail*block)
}

// meminfo reads the kernel's figures, in bytes.
func meminfo(path string) map[string]uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	figures := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
				figures[name] = n << 10
			}
		}
	}
	return figures
}

// load remembers the processors' counters of the last call.
type load struct {
	mu          sync.Mutex
	busy, total uint64
}

func newLoad() *load { return &load{} }

// percent is the busy share since the last call, with two decimals.
func (l *load) percent(path string) float64 {
	busy, total := processors(path)
	if total == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	spent, worked := total-l.total, busy-l.busy
	l.total, l.busy = total, busy
	if spent == 0 || worked > spent {
		return 0
	}
	return math.Round(float64(worked)/float64(spent)*10000) / 100
}

// processors reads the kernel's counters of all processors together; zeros when they cannot be read.
func processors(path string) (busy, total uint64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	var idle uint64
	for i, field := range strings.Fields(first) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil || i > 8 { // The label, and guests, who are counted in user already.
			continue
		}
		total += n
		if i == 4 || i == 5 { // idle, iowait
			idle += n
		}
	}
	return total - idle, total
}
