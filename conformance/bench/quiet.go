package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// quietShare is the share of the machine's processors that must be idle for a window to count as quiet.
const quietShare = 0.9

// Window is how busy others kept the machine before a measurement.
type Window struct {
	// Before names the measurement.
	Before string `json:"before"`
	// Idle is the share of all processors that nobody used in the second before, Quiet whether that is enough.
	Idle  float64 `json:"idle"`
	Quiet bool    `json:"quiet"`
	// Waited is how long it was waited for, in seconds.
	Waited float64 `json:"waited"`
}

// Quiet waits for a quiet second, at most for the scale's patience, and reports what it found.
func (r *Report) Quiet(ctx context.Context, before string) error {
	began := time.Now()
	for {
		idle, err := idleSecond(ctx)
		if err != nil {
			return err
		}
		waited := time.Since(began)
		if idle >= quietShare || waited >= r.Scale.Patience {
			r.Windows = append(r.Windows, Window{before, idle, idle >= quietShare, waited.Round(100 * time.Millisecond).Seconds()})
			return nil
		}
	}
}

// idleSecond looks at the kernel's counters for a second.
func idleSecond(ctx context.Context) (float64, error) {
	idle, total, err := counters()
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-timer.C:
	}
	idleAfter, totalAfter, err := counters()
	if err != nil || totalAfter == total {
		return 0, err
	}
	return float64(idleAfter-idle) / float64(totalAfter-total), nil
}

func counters() (idle, total uint64, _ error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(first)[1:] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i == 3 || i == 4 { // idle, and waiting for a disk
			idle += n
		}
		if i < 8 { // guests are counted as users already
			total += n
		}
	}
	return idle, total, nil
}
