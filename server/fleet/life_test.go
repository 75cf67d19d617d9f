package fleet

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

func TestKill(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	requireKind(t, adapters.KindNotFound, b.fleet.Kill(t.Context(), "other", sb.ID))
	b.provider.with(func(p *fake) {
		p.onDestroy = func(string) error {
			select {
			case <-route.Gone:
			default:
				t.Error("the streams must be cut before the box is destroyed")
			}
			return nil
		}
	})
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	require.Zero(t, b.provider.count())
	requireKind(t, adapters.KindNotFound, b.fleet.Kill(t.Context(), "team", sb.ID))
	_, err = b.fleet.Route(t.Context(), sb.ID)
	requireKind(t, adapters.KindNotFound, err)
	_, err = b.fleet.Sandbox(t.Context(), "team", sb.ID)
	requireKind(t, adapters.KindNotFound, err)
}

// The reaper's claim is refused when the deadline was moved meanwhile: that must not answer a kill.
func TestKillThatJoinsARefusedEnding(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	ctx := t.Context()
	one, mine := b.fleet.endings.join(sb.ID)
	require.True(t, mine)
	killed := make(chan error, 1)
	go func() { killed <- b.fleet.Kill(ctx, "team", sb.ID) }()
	runtime.Gosched() // the kill joins, most likely; when it comes later it has nothing to join
	b.fleet.endings.finish(sb.ID, one, b.fleet.carryOut(ctx, one, sb.ID, "timed out", whenDue(time.Now())))
	require.NoError(t, <-killed)
	require.Zero(t, b.provider.count())
}

func TestKillsJoin(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	together(10, func(int) {
		if err := b.fleet.Kill(t.Context(), "team", sb.ID); err != nil {
			requireKind(t, adapters.KindNotFound, err)
		}
	})
	require.Equal(t, 1, b.provider.destroys)
}

func TestDestroyIsTriedAgain(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	b.provider.with(func(p *fake) {
		p.onDestroy = func(string) error { return adapters.Errorf(adapters.KindUnavailable, "away") }
	})
	requireKind(t, adapters.KindUnavailable, b.fleet.Kill(t.Context(), "team", sb.ID))
	_, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
	requireKind(t, adapters.KindNotFound, err)
	b.provider.with(func(p *fake) { p.onDestroy = nil })
	b.fleet.Reconcile(t.Context())
	b.gone(sb.ID)
}

func TestDeadlineIsSharp(t *testing.T) {
	b := start(t, nil)
	req := request()
	req.Timeout = 3 * time.Second // a busy machine has looked for its route before
	sb := b.create(req)
	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	<-route.Gone
	late := time.Since(sb.EndAt)
	require.GreaterOrEqual(t, late, time.Duration(0))
	require.Less(t, late, 10*time.Second) // 0.1 s when the machine has nothing else to do; the next look is after an hour
	b.gone(sb.ID)
}

func TestTimeouts(t *testing.T) {
	b := start(t, nil)
	ctx := t.Context()
	sb := b.create(request())
	end := func() time.Duration {
		now, err := b.fleet.Sandbox(ctx, "team", sb.ID)
		require.NoError(t, err)
		require.WithinDuration(t, now.EndAt.Add(backstopSlack), b.provider.box(sb.ID).deadline, time.Minute+time.Second)
		return time.Until(now.EndAt).Round(time.Minute)
	}
	_, _, err := b.fleet.Connect(ctx, "team", sb.ID, placement.Wake{Timeout: time.Second})
	require.NoError(t, err)
	require.Equal(t, time.Minute, end(), "connect never shortens")
	_, resumed, err := b.fleet.Connect(ctx, "team", sb.ID, placement.Wake{Timeout: 5 * time.Minute})
	require.NoError(t, err)
	require.False(t, resumed)
	require.Equal(t, 5*time.Minute, end())
	_, _, err = b.fleet.Connect(ctx, "team", sb.ID, placement.Wake{Timeout: 25 * time.Hour})
	requireKind(t, adapters.KindInvalid, err)
	require.NoError(t, b.fleet.SetTimeout(ctx, "team", sb.ID, 2*time.Minute))
	require.Equal(t, 2*time.Minute, end())
	require.NoError(t, b.fleet.Refresh(ctx, "team", sb.ID, 0))
	require.Equal(t, 2*time.Minute, end())
	require.NoError(t, b.fleet.SetTimeout(ctx, "team", sb.ID, 1000*time.Hour))
	require.Equal(t, 24*time.Hour, end(), "clamped")
	requireKind(t, adapters.KindInvalid, b.fleet.SetTimeout(ctx, "team", sb.ID, -1))
	requireKind(t, adapters.KindNotFound, b.fleet.SetTimeout(ctx, "other", sb.ID, time.Hour))
	require.NoError(t, b.fleet.SetTimeout(ctx, "team", sb.ID, 0))
	require.Zero(t, b.provider.count())
}

func TestRefreshGivesAtLeast15Seconds(t *testing.T) {
	b := start(t, nil)
	req := request()
	req.Timeout = 8 * time.Second
	sb := b.create(req)
	require.NoError(t, b.fleet.Refresh(t.Context(), "team", sb.ID, 0))
	now, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
	require.NoError(t, err)
	require.InDelta(t, 15, time.Until(now.EndAt).Seconds(), 5)
}

func TestPastLongestLife(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	_, err := b.store.Sandboxes.Change(t.Context(), sb.ID, func(record *store.Sandbox) error {
		record.StartedAt = record.StartedAt.Add(-25 * time.Hour)
		return nil
	})
	require.NoError(t, err)
	requireKind(t, adapters.KindInvalid, b.fleet.SetTimeout(t.Context(), "team", sb.ID, time.Minute))
}

// A sandbox whose extension was granted must live, and one that was not extended in time must die: whichever
// way the race goes, both sides agree.
func TestExtendAgainstReaper(t *testing.T) {
	b := start(t, nil)
	together(60, func(i int) {
		req := request()
		req.Timeout = 150 * time.Millisecond
		sb, err := b.fleet.Create(t.Context(), req)
		require.NoError(t, err)
		time.Sleep(time.Until(sb.EndAt) + time.Duration(rand.IntN(20)-10)*time.Millisecond)
		err = b.fleet.SetTimeout(t.Context(), "team", sb.ID, time.Hour)
		if err != nil {
			b.gone(sb.ID)
			return
		}
		_, err = b.fleet.Route(t.Context(), sb.ID)
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond)
		require.NotNil(t, b.provider.box(sb.ID), "an extension that was granted holds")
	})
}

func TestBoxThatEndsByItself(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	route, err := b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)
	b.provider.die(sb.ID)
	<-route.Gone
	b.gone(sb.ID)
}

func TestMatch(t *testing.T) {
	b := start(t, nil)
	open := request()
	open.Secure = false
	b.create(open)
	want := b.create(request())
	b.create(request())
	token, _ := b.fleet.Tokens(want)
	calls := 0
	got, ok := b.fleet.Match(t.Context(), func(_, envdToken string) bool { calls++; return envdToken == token })
	require.True(t, ok)
	require.Equal(t, want.ID, got)
	require.LessOrEqual(t, calls, 2, "an open sandbox has no token to sign with")
	_, ok = b.fleet.Match(t.Context(), func(string, string) bool { return false })
	require.False(t, ok)
}

func TestLogs(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	b.provider.with(func(p *fake) {
		for n := uint64(1); n <= 5; n++ {
			p.boxes[sb.ID].journal = append(p.boxes[sb.ID].journal, envd.JournalEntry{Number: n, Time: time.Now(), Level: "info", Message: "process started"})
		}
	})
	read := func() (loggers []string) {
		entries, err := b.fleet.Logs(t.Context(), "team", sb.ID, store.LogQuery{})
		require.NoError(t, err)
		for _, e := range entries {
			loggers = append(loggers, e.Logger)
		}
		return loggers
	}
	want := []string{"lifecycle", "envd", "envd", "envd", "envd", "envd"}
	require.Equal(t, want, read())
	require.Equal(t, want, read(), "nothing is read twice")
	_, err := b.fleet.Logs(t.Context(), "other", sb.ID, store.LogQuery{})
	requireKind(t, adapters.KindNotFound, err)

	b.provider.with(func(p *fake) {
		p.boxes[sb.ID].journal = append(p.boxes[sb.ID].journal, envd.JournalEntry{Number: 6, Time: time.Now(), Level: "warn", Message: "last words"})
	})
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	require.Equal(t, append(want, "envd", "lifecycle"), read(), "readable after death, last words included")
}

func TestMetrics(t *testing.T) {
	b := start(t, nil)
	sb := b.create(request())
	samples := func() []store.Metric {
		list, err := b.fleet.Metrics(t.Context(), "team", sb.ID, time.Time{}, time.Time{})
		require.NoError(t, err)
		return list
	}
	require.Eventually(t, func() bool { return len(samples()) == 1 }, 30*time.Second, 5*time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	require.Len(t, samples(), 1, "idle: once a minute")
	b.provider.with(func(p *fake) { p.measured = time.Hour })
	require.Eventually(t, func() bool { return len(samples()) == 2 }, 30*time.Second, 5*time.Millisecond)
	require.Equal(t, 100.0, samples()[1].CPUUsedPct)

	latest, err := b.fleet.LatestMetrics(t.Context(), "team", []string{sb.ID, "inope"})
	require.NoError(t, err)
	require.Len(t, latest, 1)
	latest, err = b.fleet.LatestMetrics(t.Context(), "other", []string{sb.ID})
	require.NoError(t, err)
	require.Empty(t, latest)
}

func TestKillOnExit(t *testing.T) {
	b := start(t, func(c *Config) { c.KillOnExit = true })
	b.create(request())
	b.create(request())
	b.stop()
	require.Zero(t, b.provider.count())
}

func TestKillOnExitEndsWhatRunsBeforeItWaitsForCreates(t *testing.T) {
	b := start(t, func(c *Config) { c.KillOnExit = true })
	running := b.create(request())
	reached, release := make(chan struct{}), make(chan struct{})
	b.provider.with(func(p *fake) {
		p.before = func(context.Context, adapters.Spec) error { close(reached); <-release; return nil }
	})
	made := make(chan error, 1)
	go func() {
		_, err := b.fleet.Create(context.Background(), request())
		made <- err
	}()
	<-reached
	b.cancel()
	b.gone(running.ID)
	close(release)
	require.NoError(t, <-made)
	b.stop()
	require.Zero(t, b.provider.count())
}

func TestNothingIsMadeWhileStopping(t *testing.T) {
	b := start(t, nil)
	b.stop()
	_, err := b.fleet.Create(context.Background(), request())
	requireKind(t, adapters.KindUnavailable, err)
}
