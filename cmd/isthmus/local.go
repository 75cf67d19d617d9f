package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/gvisor"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
)

// localPool is the name of the pool of this machine.
const localPool = "local"

// onThisMachine is a provider whose sandboxes are on this machine.
type onThisMachine interface {
	adapters.Provider
	// Close lets go of the sandboxes, which stay alive.
	Close() error
}

// openMachine opens the sandboxes of a pool of this machine, in the form that is configured.
func openMachine(c config.Config, pool config.Pool, secrets fleet.Secrets, log *slog.Logger) (onThisMachine, error) {
	if cmp.Or(pool.Isolation, c.Local.Isolation) != gvisor.Isolation {
		return openLocal(c, pool, secrets, log)
	}
	templates, err := openTemplates(c)
	if err != nil {
		return nil, err
	}
	settings := gvisor.Config{
		DataDir: localFolder(c, pool), Runsc: c.Local.Runsc, EnvdPath: c.Local.Envd, SudoPath: c.Local.Sudo, Boxes: c.Limits.MaxSandboxes,
		Secrets: func(boxID string) (string, string) { return secrets.Transport(boxID), secrets.Control(boxID) },
		Images:  templates, NoEgress: c.Local.Egress == "none", Logger: log,
	}
	if settings.AllowPrivate, settings.Resolvers, err = ways(c.Local); err != nil {
		return nil, err
	}
	return gvisor.Open(context.Background(), settings)
}

// ways are the configured private ranges and resolvers.
func ways(l config.Local) (private []netip.Prefix, resolvers []netip.AddrPort, _ error) {
	for _, text := range l.AllowPrivate {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, nil, err
		}
		private = append(private, prefix)
	}
	for _, text := range l.Resolvers {
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, nil, err
		}
		resolvers = append(resolvers, address)
	}
	return private, resolvers, nil
}

// openLocal opens the sandboxes of a pool of this machine that share its kernel.
func openLocal(c config.Config, pool config.Pool, secrets fleet.Secrets, log *slog.Logger) (*local.Local, error) {
	if c.Local.Isolation == "process" && os.Getuid() == 0 && !c.Local.ProcessAsRoot {
		return nil, errors.New("isolation: process as root gives every sandbox this whole machine: run isthmus as an ordinary user, " +
			"leave isolation empty, or say --process-as-root (local.process_as_root: true) if that is what you want")
	}
	templates, err := openTemplates(c)
	if err != nil {
		return nil, err
	}
	neighbours, err := neighbours(c, pool)
	if err != nil {
		return nil, err
	}
	settings := local.Config{
		DataDir: localFolder(c, pool), EnvdPath: c.Local.Envd, SudoPath: c.Local.Sudo, Isolation: c.Local.Isolation,
		Machine:  local.Ceiling{Boxes: c.Limits.MaxSandboxes, CPU: c.Limits.CPU, MemoryMB: c.Limits.MemoryMB, DiskMB: c.Limits.DiskMB},
		Images:   templates,
		NoEgress: c.Local.Egress == "none",
		FirstID:  uint32(c.FirstID(pool)), LastID: uint32(c.LastID(pool)), Neighbours: neighbours, Processes: c.Local.Processes,
		Secrets:    func(boxID string) (string, string) { return secrets.Transport(boxID), secrets.Control(boxID) },
		KeepFreeMB: c.Limits.KeepFreeMB, Logger: log,
	}
	if settings.AllowPrivate, settings.Resolvers, err = ways(c.Local); err != nil {
		return nil, err
	}
	opened, err := local.Open(settings)
	if err != nil {
		return nil, err
	}
	warnOfTier(opened.Describe(), log)
	return opened, nil
}

// warnOfTier says at every start what sandboxes are not kept from.
func warnOfTier(d adapters.Description, log *slog.Logger) {
	switch {
	case log == nil:
	case d.Weak:
		log.Warn("SANDBOXES ARE NOT ISOLATED: what runs in them is this user on this machine, with its files, processes and network",
			"tier", d.Tier, "not_enforced", strings.Join(d.Unenforced, ","))
	case len(d.Unenforced) > 0:
		log.Warn("some limits of sandboxes are not enforced here: `isthmus doctor` says why", "tier", d.Tier,
			"not_enforced", strings.Join(d.Unenforced, ","))
	}
}
