//go:build linux

package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"encoding/json"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters/local"
	"github.com/isthmus/isthmus/adapters/local/cgroup"
)

// The files of runsc in a box's folder, beside those that it makes for itself.
const (
	dirDisk = "disk" // holds the file of the writable layer, without a name
	pidFile = "pid"
	logFile = "log"
)

// maxLog bounds what is read of runsc's log.
const maxLog = 64 << 10

// flags are the options of runsc that are the same for every command on a box. Its state lies in the box's folder,
// so that it goes with it.
func (p *place) flags(boxID string, r record) []string {
	network := "none"
	if r.Internet {
		network = "sandbox"
	}
	at := p.boxPath(boxID)
	return []string{
		"--root=" + at, "--log=" + filepath.Join(at, logFile), "--platform=systrap", "--network=" + network,
		"--ignore-cgroups", // it runs in the box's group from its first moment
		"--gofer-network-namespace=new", "--host-uds=none", "--allow-suid",
		fmt.Sprintf("--overlay2=root:dir=%s,size=%dm", filepath.Join(at, dirDisk), r.Resources.DiskMB),
	}
}

// launch starts gVisor, in the box's control group, tells envd its configuration, and writes down which process the
// box is. What a caller that gave up leaves is in the group.
func (m *maker) launch(ctx context.Context) error {
	config, err := json.Marshal(m.spec.Envd)
	if err != nil {
		return err
	}
	input, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = tell.Close() }()
	args := append(m.place.flags(m.record.BoxID, m.record), "run", "--detach", "--bundle="+m.path, "--pid-file="+filepath.Join(m.path, pidFile), m.record.BoxID)
	cmd := exec.CommandContext(ctx, m.place.runsc, args...)
	cmd.Stdin, cmd.Env = input, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	err = startIn(cmd, m.record.Cgroup)
	_ = input.Close()
	if err != nil {
		return fmt.Errorf("start runsc: %w", err)
	}
	told := make(chan error, 1)
	go func() {
		_, err := tell.Write(config)
		told <- errors.Join(err, tell.Close())
	}()
	err = cmd.Wait()
	if err != nil {
		_ = tell.Close() // nobody reads
		<-told
		return errors.Join(fmt.Errorf("runsc: %w: %s", err, m.said()), ctx.Err())
	}
	defer context.AfterFunc(ctx, func() { _ = tell.SetWriteDeadline(time.Unix(1, 0)) })()
	if err := <-told; err != nil {
		return fmt.Errorf("tell envd its configuration: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(m.path, pidFile))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return m.recorded(pid)
}

// startIn starts a program in a control group, in a session of its own: what is typed at the facade's terminal is
// not for boxes.
func startIn(cmd *exec.Cmd, group *cgroup.Group) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dir, err := group.Open()
	if err != nil {
		return err
	}
	if dir != nil {
		defer func() { _ = dir.Close() }()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	_, err = local.StartIn(group, 0, func() (*os.Process, error) { return cmd.Process, cmd.Start() })
	return err
}

// said is the end of what runsc wrote to its log.
func (m *maker) said() string {
	f, err := os.Open(filepath.Join(m.path, logFile))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.LimitReader(f, maxLog))
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

// strayNames are where runsc puts its control socket when the box's folder has too long a path for one.
func strayNames(boxID string) []string {
	var names []string
	for _, dir := range []string{"/var/run", "/run", "/tmp"} {
		names = append(names, filepath.Join(dir, "runsc-"+boxID+".sock"))
	}
	return names
}

// kill ends a sandbox's process.
func kill(fd int) error {
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
