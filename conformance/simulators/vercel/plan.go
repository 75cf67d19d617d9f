//go:build linux

package vercel

import "time"

// Plan are the limits of an account. They moved twice in two years, so they are data.
type Plan struct {
	Name string
	// MaxLife is the longest life of one session.
	MaxLife time.Duration
	// Concurrent sessions at a time, and so many vCPUs may be started in each window.
	Concurrent int
	VCPUs      int
	Window     time.Duration
	// MaxVCPUs of one sandbox; each brings 2048 MB of memory.
	MaxVCPUs int
}

// Plans are the published ones, as of 2026-11-29 (vercel.com/docs/vercel-sandbox/pricing).
func Plans() []Plan {
	return []Plan{
		{Name: "hobby", MaxLife: 45 * time.Minute, Concurrent: 10, VCPUs: 40, Window: 10 * time.Minute, MaxVCPUs: 4},
		{Name: "pro", MaxLife: 24 * time.Hour, Concurrent: 2000, VCPUs: 200, Window: time.Minute, MaxVCPUs: 8},
		{Name: "enterprise", MaxLife: 24 * time.Hour, Concurrent: 2000, VCPUs: 400, Window: time.Minute, MaxVCPUs: 32},
	}
}

const (
	memoryPerVCPU  = 2048 // MB
	defaultVCPUs   = 2
	defaultTimeout = 5 * time.Minute
	minTimeout     = time.Second
	maxPorts       = 15
	maxTags        = 5
	defaultRegion  = "iad1"
	// defaultImage is what a sandbox is made of when nothing is asked for.
	defaultImage = "vercel/sandbox/universal:latest"
	// snapshotLife is how long a snapshot is kept when nothing is asked for.
	snapshotLife = 7 * 24 * time.Hour
	// workdir is where commands run.
	workdir = "/vercel/sandbox"
)

// quota is what an account has started.
type quota struct {
	plan    Plan
	started []start
}

type start struct {
	at    time.Time
	vcpus int
}

// take counts a session that is about to start, or says why it may not. running is how many there are.
func (q *quota) take(now time.Time, running, vcpus int) error {
	if running >= q.plan.Concurrent {
		return fail(429, "rate_limited", "The maximum number of concurrent sandboxes of this plan is reached.")
	}
	kept, sum := q.started[:0], 0
	for _, one := range q.started {
		if now.Sub(one.at) < q.plan.Window {
			kept, sum = append(kept, one), sum+one.vcpus
		}
	}
	q.started = kept
	if sum+vcpus > q.plan.VCPUs {
		failure := fail(429, "rate_limited", "The vCPU allocation of this plan is used up for the moment.")
		failure.retryAfter = q.plan.Window
		if len(kept) > 0 {
			failure.retryAfter -= now.Sub(kept[0].at)
		}
		return failure
	}
	q.started = append(q.started, start{now, vcpus})
	return nil
}
