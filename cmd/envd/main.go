//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command envd is the daemon inside a sandbox. It is one static file that every backend carries into the boxes
// that it makes.
//
// The two settings above keep the runtime from looking at cgroup limits: it would hold files of the host's
// cgroup tree open in a sandbox.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/isthmus/isthmus/envd"
)

const usage = `usage: envd serve --config-fd N (--listen-fd N | --listen unix:PATH | --listen HOST:PORT) [--loopback HOST:PORT]
       envd start (--listen unix:PATH | --listen HOST:PORT) [--loopback HOST:PORT] [--end PIPE]    serve in the background, configured by standard input
       envd wait --control-sum HEX --listen HOST:PORT [--loopback HOST:PORT] [--deadline TIME]    serve once the facade has configured it
       envd stdio --to (unix:PATH | HOST:PORT)    carry connections to such a daemon over standard input and output
       envd install --to PATH    put a copy of this program there
       envd version`

func main() {
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, errTerminated) {
		os.Exit(terminated)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "envd:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "serve":
		return runServe(args[1:])
	case "start":
		return runStart(args[1:])
	case "wait":
		return runWait(args[1:])
	case "install":
		return runInstall(args[1:])
	case "stdio":
		return runStdio(args[1:])
	case "box": // started by the local backend only
		return runBox()
	case "version":
		_, err := fmt.Fprintln(out, envd.Version)
		return err
	}
	return errors.New(usage)
}

func runServe(args []string) error {
	var s serve
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.IntVar(&s.configFD, "config-fd", -1, "descriptor from which the configuration is read, as JSON")
	flags.StringVar(&s.end, "end", "", "named pipe to which a line is written when the deadline has passed")
	flags.IntVar(&s.listenFD, "listen-fd", -1, "descriptor of the socket on which the facade is answered")
	flags.StringVar(&s.listen, "listen", "", "address on which the facade is answered: unix:PATH or HOST:PORT")
	flags.StringVar(&s.loopback, "loopback", "", "address for programs inside the sandbox: HOST:PORT")
	flags.IntVar(&s.loopbackFD, "loopback-fd", -1, "descriptor of the socket for programs inside the sandbox")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// Notify and not Ignore: an ignored signal would stay ignored in every program that is started. A hang-up
	// or a reader of the log that went away must not end the sandbox.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return s.run(ctx)
}

func runStart(args []string) error {
	var s start
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	flags.StringVar(&s.listen, "listen", "", "address on which the facade is answered: unix:PATH or HOST:PORT")
	flags.StringVar(&s.loopback, "loopback", "", "address for programs inside the sandbox: HOST:PORT")
	flags.StringVar(&s.end, "end", "", "named pipe to which a line is written when the deadline has passed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.listen == "" {
		return errors.New("--listen is needed")
	}
	return s.run(os.Stdin)
}

func runStdio(args []string) error {
	flags := flag.NewFlagSet("stdio", flag.ContinueOnError)
	to := flags.String("to", "", "socket of the daemon: unix:PATH or HOST:PORT")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return carryStdio(ctx, *to, os.Stdin, os.Stdout)
}
