package fleet

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate/placement"
)

// able is a bench whose pool can pause and copy.
func able(t *testing.T, pause adapters.Level, adjust func(*Config)) *bench {
	b := &bench{t: t, dir: t.TempDir(), provider: newFake(), adjust: adjust}
	b.provider.capabilities = powers(pause, adapters.LevelFilesystem)
	t.Cleanup(b.provider.health.Close)
	b.up()
	t.Cleanup(b.stop)
	return b
}

func (b *bench) state(id string) store.State {
	b.t.Helper()
	sb, err := b.store.Sandboxes.Get(b.t.Context(), id)
	require.NoError(b.t, err)
	return sb.State
}

// becomes waits until a sandbox is in a state.
func (b *bench) becomes(id string, state store.State) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.state(id) == state }, 30*time.Second, 5*time.Millisecond, "the sandbox becomes %s", state)
}

func hour() placement.Wake { return placement.Wake{Timeout: time.Hour} }

func ptr[T any](v T) *T { return &v }

func TestPauseAndConnect(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	ctx, f := t.Context(), b.fleet
	sb := b.create(request())
	route, err := f.Route(ctx, sb.ID)
	require.NoError(t, err)
	require.NoError(t, f.Pause(ctx, "team", sb.ID, placement.Pause{}))
	<-route.Gone
	paused, err := f.Sandbox(ctx, "team", sb.ID)
	require.NoError(t, err)
	require.Equal(t, store.StatePaused, paused.State)
	require.Equal(t, "memory", paused.PauseLevel)
	require.WithinDuration(t, time.Now(), paused.EndAt, 10*time.Second)
	require.True(t, b.provider.box(sb.ID).Paused)

	requireKind(t, adapters.KindPrecondition, f.Pause(ctx, "team", sb.ID, placement.Pause{}))
	requireKind(t, adapters.KindNotFound, f.Pause(ctx, "other", sb.ID, placement.Pause{}))
	requireKind(t, adapters.KindNotFound, f.SetTimeout(ctx, "team", sb.ID, time.Hour))
	requireKind(t, adapters.KindNotFound, f.SetTimeout(ctx, "team", sb.ID, 0))
	requireKind(t, adapters.KindNotFound, f.Refresh(ctx, "team", sb.ID, time.Hour))
	_, err = f.Route(ctx, sb.ID)
	requireKind(t, adapters.KindNotFound, err)
	_, err = f.Snapshot(ctx, "team", sb.ID, "", nil)
	requireKind(t, adapters.KindNotFound, err)
	requireKind(t, adapters.KindNotFound, f.SetNetwork(ctx, "team", sb.ID, store.Network{}, nil))
	b.fleet.Reconcile(ctx)
	require.Equal(t, store.StatePaused, b.state(sb.ID), "a paused sandbox is left alone")

	_, _, err = f.Connect(ctx, "team", sb.ID, placement.Wake{Timeout: time.Hour, Memory: ptr(false)})
	requireKind(t, adapters.KindUnsupported, err)
	for !now().After(sb.StartedAt) { // times are in milliseconds
		runtime.Gosched()
	}
	running, resumed, err := f.Connect(ctx, "team", sb.ID, hour())
	require.NoError(t, err)
	require.True(t, resumed)
	require.Equal(t, store.StateRunning, running.State)
	require.True(t, running.StartedAt.After(sb.StartedAt), "the clock starts anew")
	require.WithinDuration(t, running.StartedAt.Add(time.Hour), running.EndAt, time.Minute)
	require.WithinDuration(t, running.EndAt.Add(backstopSlack), b.provider.box(sb.ID).deadline, 5*time.Minute)
	_, err = f.Route(ctx, sb.ID)
	require.NoError(t, err)
	spec := b.provider.resumed[0]
	require.Equal(t, map[string]string{"A": "template", "B": "request"}, spec.Envd.EnvVars, "what the create said is known again")
	require.Equal(t, b.provider.box(sb.ID).spec.Envd.Transport, spec.Envd.Transport)
	require.Equal(t, b.provider.box(sb.ID).spec.Envd.AccessToken, spec.Envd.AccessToken)
	_, resumed, err = f.Connect(ctx, "team", sb.ID, hour())
	require.NoError(t, err)
	require.False(t, resumed)
}

func TestPauseKeepsWhatWasAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		has    adapters.Level
		memory *bool
		level  string
		kind   adapters.Kind
	}{
		"the most":                        {adapters.LevelMemory, nil, "memory", ""},
		"the most of files":               {adapters.LevelFilesystem, nil, "filesystem", ""},
		"memory":                          {adapters.LevelMemory, ptr(true), "memory", ""},
		"files only":                      {adapters.LevelMemory, ptr(false), "filesystem", ""},
		"memory of a place that has none": {adapters.LevelFilesystem, ptr(true), "", adapters.KindUnsupported},
		"a place that cannot":             {"none", nil, "", adapters.KindUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, test.has, nil)
			sb := b.create(request())
			err := b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{Memory: test.memory})
			if test.kind != "" {
				requireKind(t, test.kind, err)
				require.Equal(t, store.StateRunning, b.state(sb.ID))
				return
			}
			require.NoError(t, err)
			paused, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
			require.NoError(t, err)
			require.Equal(t, test.level, paused.PauseLevel)
		})
	}
}

func TestPausedIsKilled(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	sb := b.create(request())
	require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{Healthy: true}))
	require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
	b.gone(sb.ID)
	requireKind(t, adapters.KindNotFound, b.fleet.Kill(t.Context(), "team", sb.ID))
}

// SDKs answer "paused already" to a conflict, which a sandbox that is being killed never will be.
func TestAPauseOfWhatIsBeingKilledFindsNothing(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	sb := b.create(request())
	b.cut(sb.ID, store.StateKilling)
	requireKind(t, adapters.KindNotFound, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
	require.False(t, b.provider.box(sb.ID).Paused)
}

// A kill waits for a pause in progress, and connects that come meanwhile resume it afterwards.
func TestMovesFollowEachOther(t *testing.T) {
	for name, second := range map[string]func(f *Fleet, id string) error{
		"kill":  func(f *Fleet, id string) error { return f.Kill(context.Background(), "team", id) },
		"pause": func(f *Fleet, id string) error { return f.Pause(context.Background(), "team", id, placement.Pause{}) },
		"connect": func(f *Fleet, id string) error {
			_, _, err := f.Connect(context.Background(), "team", id, hour())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, adapters.LevelMemory, nil)
			sb := b.create(request())
			entered, release := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			b.provider.with(func(p *fake) {
				p.onPower = func(call, _ string) error {
					if call == "pause" && once.CompareAndSwap(false, true) {
						close(entered)
						<-release
					}
					return nil
				}
			})
			first, after := make(chan error, 1), make(chan error, 1)
			go func() { first <- b.fleet.Pause(context.Background(), "team", sb.ID, placement.Pause{}) }()
			<-entered
			seen, err := b.fleet.Sandbox(t.Context(), "team", sb.ID)
			require.NoError(t, err)
			require.Equal(t, store.StatePaused, seen.State.Shown())
			go func() { after <- second(b.fleet, sb.ID) }()
			select {
			case <-after:
				t.Error("it did not wait for the pause")
			case <-time.After(50 * time.Millisecond): // it would have come through by now
			}
			close(release)
			require.NoError(t, <-first)
			require.NoError(t, <-after)
			switch name {
			case "kill":
				b.gone(sb.ID)
			case "connect":
				require.Equal(t, store.StateRunning, b.state(sb.ID))
			case "pause":
				require.Equal(t, store.StatePaused, b.state(sb.ID))
			}
		})
	}
}

func TestRacesEndSomewhere(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	for range 5 {
		sb := b.create(request())
		together(12, func(i int) {
			ctx := context.Background()
			switch i % 4 {
			case 0:
				_ = b.fleet.Pause(ctx, "team", sb.ID, placement.Pause{})
			case 1:
				_, _, _ = b.fleet.Connect(ctx, "team", sb.ID, hour())
			case 2:
				_ = b.fleet.SetTimeout(ctx, "team", sb.ID, time.Hour)
			case 3:
				b.fleet.Reconcile(ctx)
			}
		})
		state := b.state(sb.ID)
		require.Contains(t, []store.State{store.StateRunning, store.StatePaused}, state)
		require.Equal(t, state == store.StatePaused, b.provider.box(sb.ID).Paused)
		require.NoError(t, b.fleet.Kill(t.Context(), "team", sb.ID))
		b.gone(sb.ID)
	}
}

// The facade dies at any point of a move: the next one finishes it.
func TestMovesAreFinishedAfterACrash(t *testing.T) {
	for name, test := range map[string]struct {
		claimed store.State
		paused  bool // the box, when the facade died
		want    store.State
	}{
		"before the pause":  {store.StatePausing, false, store.StatePaused},
		"after the pause":   {store.StatePausing, true, store.StatePaused},
		"before the resume": {store.StateResuming, true, store.StateRunning},
		"after the resume":  {store.StateResuming, false, store.StateRunning},
		"at a snapshot":     {store.StateSnapshotting, false, store.StateRunning},
		"stopped by others": {store.StateRunning, true, store.StatePaused},
		"started by others": {store.StatePaused, false, store.StatePaused},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, adapters.LevelMemory, nil)
			sb := b.create(request())
			b.stop()
			b.up()
			_, err := b.store.Sandboxes.Change(t.Context(), sb.ID, func(record *store.Sandbox) error {
				record.State, record.PauseLevel, record.ResumeFor = test.claimed, "memory", time.Hour
				if test.claimed == store.StateRunning || test.claimed == store.StateSnapshotting {
					record.PauseLevel = ""
				}
				return nil
			})
			require.NoError(t, err)
			b.provider.with(func(p *fake) { p.boxes[sb.ID].Paused = test.paused })
			b.restart()
			b.becomes(sb.ID, test.want)
			require.Eventually(t, func() bool {
				return b.provider.box(sb.ID).Paused == (test.want == store.StatePaused) && b.fleet.moves.get(sb.ID) == nil
			}, 30*time.Second, 5*time.Millisecond)
			_, _, err = b.fleet.Connect(t.Context(), "team", sb.ID, hour())
			require.NoError(t, err)
		})
	}
}

func TestAnsweredOrNotAPauseIsKnown(t *testing.T) {
	unknown := adapters.Errorf(adapters.KindUnknownOutcome, "lost")
	t.Run("the answer is lost", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) { p.answer = unknown })
		require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
		_, resumed, err := b.fleet.Connect(t.Context(), "team", sb.ID, hour())
		require.NoError(t, err)
		require.True(t, resumed)
	})
	t.Run("it did not happen", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) { p.onPower = func(string, string) error { return unknown } })
		requireKind(t, adapters.KindUnknownOutcome, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
		require.Equal(t, store.StateRunning, b.state(sb.ID))
		_, err := b.fleet.Route(t.Context(), sb.ID)
		require.NoError(t, err)
	})
	t.Run("nobody says", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		b.provider.with(func(p *fake) {
			p.answer, p.getErr = unknown, adapters.Errorf(adapters.KindUnavailable, "away")
		})
		requireKind(t, adapters.KindUnknownOutcome, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
		require.Equal(t, store.StatePausing, b.state(sb.ID))
		b.provider.with(func(p *fake) { p.answer, p.getErr = nil, nil })
		b.fleet.Reconcile(t.Context())
		b.becomes(sb.ID, store.StatePaused)
	})
	t.Run("the box is gone", func(t *testing.T) {
		b := able(t, adapters.LevelMemory, nil)
		sb := b.create(request())
		require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
		b.provider.with(func(p *fake) { delete(p.boxes, sb.ID) })
		_, _, err := b.fleet.Connect(t.Context(), "team", sb.ID, hour())
		requireKind(t, adapters.KindNotFound, err)
		b.gone(sb.ID)
	})
}

func TestTheTimeoutPauses(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	req := request()
	req.Timeout, req.AutoPause = 300*time.Millisecond, true
	sb := b.create(req)
	require.WithinDuration(t, sb.EndAt.Add(autoPauseSlack), b.provider.box(sb.ID).deadline, 2*time.Minute)
	b.becomes(sb.ID, store.StatePaused)
	require.True(t, b.provider.box(sb.ID).Paused)

	_, _, err := b.fleet.Connect(t.Context(), "team", sb.ID, hour())
	require.NoError(t, err)
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", sb.ID, 0))
	require.Equal(t, store.StatePaused, b.state(sb.ID))
	_, _, err = b.fleet.Connect(t.Context(), "team", sb.ID, placement.Wake{Timeout: 300 * time.Millisecond, AutoPause: ptr(false)})
	require.NoError(t, err)
	b.gone(sb.ID)
}

func TestATimeoutThatCannotPauseIsTriedAgain(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	b.provider.with(func(p *fake) {
		p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindUnavailable, "away") }
	})
	req := request()
	req.Timeout, req.AutoPause = 100*time.Millisecond, true
	sb := b.create(req)
	require.Eventually(t, func() bool {
		now, err := b.store.Sandboxes.Get(t.Context(), sb.ID)
		return err == nil && now.State == store.StateRunning && now.EndAt.After(sb.EndAt.Add(10*time.Second))
	}, 30*time.Second, 5*time.Millisecond, "it runs on for a little")
	require.NotNil(t, b.provider.box(sb.ID))
}

// A pause at the end is not tried without end: one that its place never carries out, or has not for long, is an end.
func TestATimeoutThatNeverPausesEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer adapters.Kind
		due    time.Duration // how long ago the first try was
	}{
		"the place says that it cannot": {adapters.KindUnsupported, 0},
		"the place is away for long":    {adapters.KindUnavailable, pauseTime},
	} {
		t.Run(name, func(t *testing.T) {
			b := able(t, adapters.LevelFilesystem, nil)
			b.provider.with(func(p *fake) {
				p.onPower = func(string, string) error { return adapters.Errorf(c.answer, "no") }
			})
			req := request()
			req.AutoPause = true
			sb := b.create(req)
			_, err := b.store.Sandboxes.Change(t.Context(), sb.ID, func(record *store.Sandbox) error {
				record.EndAt = now()
				if c.due > 0 {
					record.PauseDueAt = now().Add(-c.due)
				}
				return nil
			})
			require.NoError(t, err)
			b.fleet.wakeReaper()
			b.gone(sb.ID)
		})
	}
}

// A sandbox that is given more time gets all the tries of a pause again.
func TestMoreTimeForgetsFailedPauses(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	b.provider.with(func(p *fake) {
		p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindUnavailable, "away") }
	})
	req := request()
	req.Timeout, req.AutoPause = 100*time.Millisecond, true
	sb := b.create(req)
	due := func() bool {
		now, err := b.store.Sandboxes.Get(t.Context(), sb.ID)
		require.NoError(t, err)
		return !now.PauseDueAt.IsZero()
	}
	require.Eventually(t, due, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", sb.ID, time.Hour))
	require.False(t, due())
}

// Who ends the time of a sandbox that its pool cannot pause has ended it.
func TestTimeoutZeroWhereNothingPauses(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, nil)
	b.provider.with(func(p *fake) {
		p.onPower = func(string, string) error { return adapters.Errorf(adapters.KindUnsupported, "no") }
	})
	req := request()
	req.AutoPause = true
	sb := b.create(req)
	require.NoError(t, b.fleet.SetTimeout(t.Context(), "team", sb.ID, 0))
	b.gone(sb.ID)
}

func TestAutoPauseNeedsAPoolThatCan(t *testing.T) {
	b := able(t, adapters.LevelFilesystem, func(c *Config) {
		c.Pools = append([]Pool{{Name: "zero", Provider: newFake()}}, c.Pools...)
	})
	req := request()
	req.AutoPause = true
	require.Equal(t, "one", b.create(req).Pool)
	req.AutoPauseLevel = adapters.LevelMemory
	_, err := b.fleet.Create(t.Context(), req)
	requireKind(t, adapters.KindUnsupported, err)
	require.ErrorContains(t, err, "autoPause")
	req.AutoPauseLevel, req.AutoResume = "", true
	_, err = b.fleet.Create(t.Context(), req)
	require.ErrorContains(t, err, "autoResume")
}

func TestTrafficWakes(t *testing.T) {
	b := able(t, adapters.LevelMemory, nil)
	req := request()
	req.AutoPause, req.AutoResume = true, true
	sb := b.create(req)
	require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{}))
	_, err := b.fleet.Route(t.Context(), sb.ID)
	var asleep *Asleep
	require.ErrorAs(t, err, &asleep)
	requireKind(t, adapters.KindNotFound, err)
	require.Equal(t, b.fleet.cfg.Secrets.EnvdToken(sb.ID), asleep.EnvdToken)
	together(5, func(int) { require.NoError(t, b.fleet.Wake(t.Context(), sb.ID)) })
	require.Len(t, b.provider.resumed, 1, "all wait for one resume")
	_, err = b.fleet.Route(t.Context(), sb.ID)
	require.NoError(t, err)

	require.NoError(t, b.fleet.Pause(t.Context(), "team", sb.ID, placement.Pause{Memory: ptr(false)}))
	_, err = b.fleet.Route(t.Context(), sb.ID)
	require.False(t, errors.As(err, &asleep), "of files only nothing listens any more")
}

func TestPausedSandboxesLeaveRoomInTheTeam(t *testing.T) {
	b := able(t, adapters.LevelMemory, func(c *Config) { c.TeamConcurrency = 1 })
	first := b.create(request())
	_, err := b.fleet.Create(t.Context(), request())
	requireKind(t, adapters.KindTeamLimit, err)
	require.NoError(t, b.fleet.Pause(t.Context(), "team", first.ID, placement.Pause{}))
	second := b.create(request())
	_, _, err = b.fleet.Connect(t.Context(), "team", first.ID, hour())
	requireKind(t, adapters.KindTeamLimit, err)
	require.Equal(t, store.StatePaused, b.state(first.ID))
	require.NoError(t, b.fleet.Kill(t.Context(), "team", second.ID))
	_, _, err = b.fleet.Connect(t.Context(), "team", first.ID, hour())
	require.NoError(t, err)
}
