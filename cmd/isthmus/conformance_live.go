package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/conformance/provider"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
)

// live says which pool's account the suite of adapters is run on.
type live struct {
	// wanted says that it was asked for: sandboxes are made in a real account, and billed.
	wanted bool
	// provider is the name of a configured pool, or of a provider that one is of.
	provider, template, only string
}

// livePatience is how long a cloud may take to notice that a sandbox has ended.
const livePatience = 2 * time.Minute

// conformLive runs the suite of adapters on the account of one configured pool. Its sandboxes carry a label of their
// own, so that those of others are left alone, and all of them are removed.
func conformLive(ctx context.Context, out io.Writer, c config.Config, l live) error {
	pool, err := poolFor(c, l.provider)
	if err != nil {
		return err
	}
	if !l.wanted {
		return fmt.Errorf("this makes sandboxes in the account of pool %s, which may cost money: say --live", pool.Name)
	}
	if pool.Provider == config.ProviderLocal {
		return errors.New("this is for accounts elsewhere: the sandboxes of this machine are tried by --url")
	}
	folder, err := os.MkdirTemp("", "isthmus-live-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	secrets, err := fleet.LoadSecrets(filepath.Join(folder, "secret"))
	if err != nil {
		return err
	}
	one, err := newPlaces(secrets, slog.New(slog.DiscardHandler)).openPlace(c, pool)
	if err != nil {
		return err
	}
	printDeclared(out, one.provider)
	watched := adapters.Watch(one.provider, nil)
	passed, failed, err := provider.Run(ctx, provider.Harness{
		Provider: watched, Template: l.template, AtOnce: 3, Patience: livePatience,
		Secrets: func(boxID string) (string, string) { return secrets.Transport(boxID), secrets.Control(boxID) },
	}, l.only, func(r provider.Result) { printLive(out, r) })
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	printMisread(out, watched.Drifts())
	if err := errors.Join(err, one.close()); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("pool %s differs from what its adapter declares in %d cases", pool.Name, failed)
	}
	return looked(passed, l.only)
}

// poolFor finds a pool by its name, or else the first of a provider.
func poolFor(c config.Config, name string) (config.Pool, error) {
	for _, matches := range []func(config.Pool) bool{
		func(p config.Pool) bool { return p.Name == name }, func(p config.Pool) bool { return p.Provider == name },
	} {
		for _, pool := range c.AllPools() {
			if matches(pool) {
				return pool, nil
			}
		}
	}
	return config.Pool{}, fmt.Errorf("no pool of the configuration is called %s, or of that provider: configure one, with its credential in the environment", name)
}

// printDeclared writes what the adapter says, before it is held against what is seen.
func printDeclared(out io.Writer, p adapters.Provider) {
	d := p.Describe()
	fmt.Fprintf(out, "declared: %s, %s, %s\n", d.Provider, d.Isolation, d.Tier)
	for _, one := range adapters.CapabilitiesOf(p).List() {
		fmt.Fprintf(out, "declared: %s = %s (%s, %s %s)\n", one.Feature, one.Value, one.Evidence, one.Source, one.Date)
	}
}

// printMisread writes what the provider answered that the adapter does not understand, whether or not a case failed for it.
func printMisread(out io.Writer, drifts []adapters.Drift) {
	for _, d := range drifts {
		fmt.Fprintf(out, "not understood: %d answers to %s; declared: %s = %s; the last: %s\n", d.Total, d.Operation, d.Feature, d.Declared, d.Reason)
	}
}

// printLive writes how a case went, and after a failure what it rests on.
func printLive(out io.Writer, r provider.Result) {
	verdict := "PASS"
	if len(r.Failures) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(out, "%s %s (%v)\n", verdict, r.Name, r.Took.Round(time.Millisecond))
	for _, failure := range r.Failures {
		fmt.Fprintf(out, "     observed: %s\n", failure)
	}
	if len(r.Failures) == 0 {
		return
	}
	for _, one := range r.Declared {
		fmt.Fprintf(out, "     declared: %s = %s (%s, %s %s)\n", one.Feature, one.Value, one.Evidence, one.Source, one.Date)
	}
}
