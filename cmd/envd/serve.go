package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/isthmus/isthmus/envd"
	"github.com/isthmus/isthmus/envd/daemon"
)

// fileMode is what programs and uploads leave for others to read, whatever envd was started with.
const fileMode = 0o022

// serve is the ordinary way to run: in a machine that is there already.
type serve struct {
	configFD, listenFD, loopbackFD int
	listen, loopback               string
	// end is a named pipe from which whoever holds the sandbox learns that the deadline has passed; empty: none.
	end string
}

func (s serve) run(ctx context.Context) error {
	syscall.Umask(fileMode)
	config, err := readConfig(s.configFD)
	if err != nil {
		return err
	}
	daemon.BoundMemory(config)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, err := daemon.New(config, daemon.Options{OnDeadline: func() {
		s.tellEnd()
		cancel()
	}})
	if err != nil {
		return err
	}
	facade, err := s.facade()
	if err != nil {
		return err
	}
	defer facade.Close()
	loopback, err := s.inner()
	if err != nil {
		return err
	}
	if loopback != nil {
		defer loopback.Close()
	}
	return d.Serve(ctx, facade, loopback)
}

// tellEnd writes to the pipe, if somebody reads from it: the end of envd alone does not end the sandbox.
func (s serve) tellEnd() {
	if s.end == "" {
		return
	}
	pipe, err := os.OpenFile(s.end, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "envd: nobody waits for the end of the sandbox:", err)
		return
	}
	defer pipe.Close()
	_, _ = pipe.WriteString("deadline\n")
}

// readConfig reads to the end of a descriptor, so that the secrets lie in no file, argument or environment.
func readConfig(fd int) (envd.Config, error) {
	var c envd.Config
	if fd < 0 {
		return c, errors.New("--config-fd is needed: the configuration holds secrets and is read from a pipe")
	}
	f := inherited(fd, "configuration")
	defer f.Close()
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	return c, nil
}

// inner is the listener for programs in the sandbox; nil: none.
func (s serve) inner() (net.Listener, error) {
	if s.loopbackFD >= 0 {
		return inheritedListener(s.loopbackFD)
	}
	if s.loopback == "" {
		return nil, nil
	}
	return net.Listen("tcp", s.loopback)
}

func (s serve) facade() (net.Listener, error) {
	if s.listenFD >= 0 {
		return inheritedListener(s.listenFD)
	}
	if path, ok := strings.CutPrefix(s.listen, "unix:"); ok {
		return net.Listen("unix", path)
	}
	if s.listen == "" {
		return nil, errors.New("--listen or --listen-fd is needed")
	}
	return net.Listen("tcp", s.listen)
}

func inheritedListener(fd int) (net.Listener, error) {
	f := inherited(fd, "socket")
	defer f.Close()
	return net.FileListener(f)
}

// inherited takes a descriptor over, and keeps it from being inherited further.
func inherited(fd int, name string) *os.File {
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}
