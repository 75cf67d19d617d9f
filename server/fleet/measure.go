package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// measure returns what a new box is seen to be: its sizes by the provider's meter, its kernel by the envd in it.
// What cannot be seen is zero; the error says why.
func (f *Fleet) measure(ctx context.Context, p *pool, sb store.Sandbox) (placement.Measured, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timing.Settle)
	defer cancel()
	if f.cfg.Measure != nil {
		return f.cfg.Measure(ctx, p.name, sb.BoxID)
	}
	var seen placement.Measured
	var unmeasured, unseen error
	if p.meter != nil {
		var sample adapters.Sample
		sample, unmeasured = p.meter.Measure(ctx, sb.BoxID)
		seen.Resources = adapters.Resources{CPU: sample.CPUCount, MemoryMB: int(sample.MemTotal >> 20), DiskMB: int(sample.DiskTotal >> 20)}
	}
	if p.native == nil { // another server's envd has no such route
		var usage envd.Usage
		if usage, unseen = f.usage(ctx, p, sb.BoxID); unseen == nil {
			f.kernels.judge(&seen, usage, sb.ID)
		}
	}
	return seen, errors.Join(unmeasured, unseen)
}

// usage asks the envd of a box what it sees of its machine.
func (f *Fleet) usage(ctx context.Context, p *pool, boxID string) (envd.Usage, error) {
	var usage envd.Usage
	response, err := f.ask(ctx, p, boxID, envd.RouteUsage)
	if err != nil {
		return usage, err
	}
	defer response.Body.Close()
	return usage, json.NewDecoder(io.LimitReader(response.Body, maxUsage)).Decode(&usage)
}

// maxUsage bounds one answer, in bytes.
const maxUsage = 64 << 10
