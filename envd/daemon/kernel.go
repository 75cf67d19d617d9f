package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/envd"
)

// readKernelLog is the action of syslog(2) that reads what is there without taking it away.
const readKernelLog = 3

// kernel adds what the kernel shows of itself, as evidence of how the sandbox is kept apart from others.
func (d *Daemon) kernel(u *envd.Usage) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		u.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	u.BootID = d.bootID()
	u.Booted = booted(d.statPath())
	u.GVisor = gVisor()
}

// bootID is what the kernel calls its start; empty when it does not tell.
func (d *Daemon) bootID() string {
	if d.options.BootID != "" {
		return d.options.BootID
	}
	text, err := os.ReadFile(filepath.Join(d.options.Root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// booted is when the kernel started; zero when it does not tell.
func booted(path string) time.Time {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "btime "); found {
			if seconds, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
				return time.Unix(seconds, 0).UTC()
			}
		}
	}
	return time.Time{}
}

// gVisor reports whether the kernel's log is gVisor's: a few lines that every sandbox may read there.
func gVisor() bool {
	buffer := make([]byte, 4<<10)
	n, err := unix.Klogctl(readKernelLog, buffer)
	return err == nil && bytes.Contains(buffer[:max(n, 0)], []byte("Starting gVisor"))
}
