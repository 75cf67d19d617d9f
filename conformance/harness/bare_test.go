package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/isthmus/isthmus/adapters/bootstrap"
	"github.com/isthmus/isthmus/conformance/simulators/bare"
	"github.com/isthmus/isthmus/conformance/simulators/machine"
	"github.com/isthmus/isthmus/server"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/store/kv/badger"
)

// bareFolder is where the boxes of a facade on bare boxes are, below its data folder.
const bareFolder = "cloud"

// barePort is the one port of a box.
const barePort = 49980

// bareCases are the whole suites of the clients on boxes that know nothing of envd, of which one port or nothing but exec
// can be had.
func bareCases() []listed {
	return append(someBareCases(),
		listed{"python by one port", func(t *testing.T) { runPython(t, newFacade(t, settings{role: roleOnePort})) }},
		listed{"javascript by nothing but exec", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{role: roleOnlyExec})) }})
}

// someBareCases are one of each form and of each client, for which the gate has the time.
func someBareCases() []listed {
	return []listed{
		{"javascript by one port", func(t *testing.T) { runJavaScript(t, newFacade(t, settings{role: roleOnePort})) }},
		{"python by nothing but exec", func(t *testing.T) { runPython(t, newFacade(t, settings{role: roleOnlyExec})) }},
	}
}

// bareForm is the poor form in which a role's cloud is offered.
func bareForm(role string, cloud *bare.Cloud) bootstrap.Bare {
	if role == roleOnePort {
		return bare.OnePort{Cloud: cloud, Port: barePort}
	}
	return bare.OnlyExec{Cloud: cloud}
}

// serveBare is a facade whose one pool are bare boxes, which end with it: it is told its configuration as
// `isthmus serve --config FILE` is, and fails when a box was left.
func serveBare(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := onBare(ctx, role, os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "harness: a facade on bare boxes:", err)
		return 1
	}
	return 0
}

// onBare runs the facade until ctx ends.
func onBare(ctx context.Context, role, file string) (failed error) {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	images, err := machine.Folder(filepath.Join(c.Data, "images"))
	if err != nil {
		return err
	}
	boxes, err := machine.New(ctx, machine.Config{Dir: filepath.Join(c.Data, bareFolder), Images: images, Logger: log})
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, boxes.Close()) }()
	engine, err := badger.Open(filepath.Join(c.Data, "store"), log)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, engine.Close()) }()
	records, err := store.Open(ctx, engine)
	if err != nil {
		return err
	}
	secrets, err := fleet.LoadSecrets(filepath.Join(c.Data, "key"))
	if err != nil {
		return err
	}
	cloud := bare.New(boxes)
	provider := bootstrap.New(bareForm(role, cloud), bootstrap.Config{
		Port: barePort, Logger: log,
		Secrets: func(boxID string) (string, string) { return secrets.Transport(boxID), secrets.Control(boxID) },
	})
	api, err := admin.Prepare(ctx, records, c.Data, os.Getenv("ISTHMUS_API_KEY"))
	if err != nil {
		return err
	}
	one, err := server.New(server.Options{
		Config: c, APIKey: api, Store: records, Secrets: secrets, Log: log, Pools: []fleet.Pool{{Name: "bare", Provider: provider}},
	})
	if err != nil {
		return err
	}
	err = one.Run(ctx, func(admin.Environment) {})
	if left := cloud.Boxes(); left > 0 {
		err = errors.Join(err, fmt.Errorf("%d boxes were left", left))
	}
	return err
}
