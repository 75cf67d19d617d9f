package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxConfig bounds what is read of a configuration, in bytes.
const maxConfig = 8 << 20

// start is how envd comes to run in a machine that only starts programs: it takes the configuration from its
// standard input, opens the sockets, leaves a daemon behind that is nobody's child, and ends. Whoever started
// it learns from its exit code whether the sockets could be had.
type start struct {
	listen, loopback, end string
}

func (s start) run(in io.Reader) error {
	config, err := io.ReadAll(io.LimitReader(in, maxConfig))
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	facade, err := listenFile(s.listen)
	if err != nil {
		return err
	}
	defer facade.Close()
	args := []string{"serve", "--config-fd", "3", "--listen-fd", "4"}
	files := []*os.File{facade}
	if s.loopback != "" {
		loopback, err := listenFile(s.loopback)
		if err != nil {
			return err
		}
		defer loopback.Close()
		args, files = append(args, "--loopback-fd", "5"), append(files, loopback)
	}
	if s.end != "" {
		args = append(args, "--end", s.end)
	}
	return detach(args, config, files)
}

// detach starts a daemon with open sockets, tells it its configuration over a pipe, and does not wait for it.
func detach(args []string, config []byte, files []*os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	daemon := exec.Command(self, args...)
	daemon.Dir = "/"
	daemon.ExtraFiles = append([]*os.File{read}, files...)
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = daemon.Start()
	_ = read.Close()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	if _, err = write.Write(config); err != nil {
		return errors.Join(fmt.Errorf("tell the daemon its configuration: %w", err), daemon.Process.Kill())
	}
	return daemon.Process.Release()
}

// listenFile opens a listening socket, unix:PATH or HOST:PORT, to be passed on. A socket file that nobody
// listens on any more is replaced; its folder is for nobody else.
func listenFile(address string) (*os.File, error) {
	path, isPath := strings.CutPrefix(address, "unix:")
	if !isPath {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		return l.(*net.TCPListener).File()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("listen %s: %w", strconv.Quote(path), syscall.EADDRINUSE)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the daemon has it
	return l.(*net.UnixListener).File()
}
