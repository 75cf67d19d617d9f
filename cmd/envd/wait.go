package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd/daemon"
	"github.com/isthmus/isthmus/envd/daemon/keep"
)

// wait is how envd runs in a container that starts it: it has no configuration yet, knows of its secrets only
// their sum, and serves once the facade has told it the rest.
type wait struct {
	controlSum, listen, loopback string
	deadline                     time.Time
	// volume is a folder that outlives the container, for what a pause keeps; empty: there is none. restore says that a
	// pause has kept something there.
	volume  string
	restore bool
}

// errTerminated says that this process was ended from outside: its exit code is what shells give for SIGTERM. A kubelet
// that evicts a pod forgets why where all ends well: the pod's phase is Succeeded then, and the reason went with Failed.
var errTerminated = errors.New("ended by a signal")

const terminated = 128 + int(syscall.SIGTERM)

func runWait(args []string) error {
	var w wait
	flags := flag.NewFlagSet("wait", flag.ContinueOnError)
	flags.StringVar(&w.controlSum, "control-sum", "", "SHA-256 of the control secret, in hexadecimal digits")
	flags.StringVar(&w.listen, "listen", "", "address on which the facade is answered: HOST:PORT")
	flags.StringVar(&w.loopback, "loopback", "", "address for programs inside the sandbox: HOST:PORT")
	flags.TextVar(&w.deadline, "deadline", time.Time{}, "when waiting ends, RFC 3339")
	flags.StringVar(&w.volume, "volume", "", "folder that outlives the container, for what a pause keeps")
	flags.BoolVar(&w.restore, "restore", false, "bring back what a pause has kept on the volume")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if w.controlSum == "" || w.listen == "" {
		return errors.New("--control-sum and --listen are needed")
	}
	if w.restore && w.volume == "" {
		return errors.New("--restore needs --volume")
	}
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := w.run(ctx); err != nil || ctx.Err() == nil {
		return err
	}
	return errTerminated
}

// prepare notes what the image brought, and brings back what a pause kept, before anything else runs.
func (w wait) prepare(ctx context.Context) (*keep.Keep, error) {
	if w.volume == "" {
		return nil, nil
	}
	kept, err := keep.Open(w.volume)
	if err == nil {
		err = kept.Index(ctx)
	}
	if err == nil && w.restore {
		err = kept.Restore(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the volume for pauses: %w", err)
	}
	return kept, nil
}

func (w wait) run(ctx context.Context) error {
	syscall.Umask(fileMode)
	// What this process is told stays in its memory: a process that is not dumpable cannot be read by others.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close this process to others: %w", err)
	}
	kept, err := w.prepare(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", w.listen)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("%s is no TCP address", w.listen)
	}
	config, err := daemon.Await(ctx, tcp, w.controlSum, w.deadline)
	if ctx.Err() != nil || errors.Is(err, daemon.ErrDeadline) {
		return nil
	}
	if err != nil {
		return err
	}
	daemon.BoundMemory(config)
	d, err := daemon.New(config, daemon.Options{Keep: kept})
	if err != nil {
		return err
	}
	loopback, err := serve{loopback: w.loopback, loopbackFD: -1}.inner()
	if err != nil {
		return err
	}
	if loopback != nil {
		defer func() { _ = loopback.Close() }()
	}
	return d.Serve(ctx, l, loopback)
}
