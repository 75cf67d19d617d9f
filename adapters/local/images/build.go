package images

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/isthmus/isthmus/adapters"
)

// customize turns a bare Debian root into the base image.
//
//go:embed customize.sh
var customize string

// packages is what the base image has beside Debian's minimum. Node is no Debian package here (customize.sh)
// unless npm cannot fetch it.
func packages() []string {
	return []string{
		"ca-certificates", "curl", "git", "iproute2", "less", "procps", "python-is-python3", "python3", "python3-pip",
		"python3-venv", "tzdata", "unzip", "wget", "xz-utils",
	}
}

// dpkg are its options, in the image too: nobody reads manuals in a box, nor does a box outlive a crash.
func dpkg() []string {
	return []string{
		"force-unsafe-io",
		"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
		"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	}
}

// Build makes the base image from this machine's own Debian packages, which takes one to three minutes and 400 MB,
// and gives it the name. Progress, when it is not nil, gets the build's output. An image that was built by
// the same recipe is taken as it is.
func (s *Store) Build(ctx context.Context, name string, progress io.Writer) (Image, error) {
	if err := checkName(name); err != nil {
		return Image{}, err
	}
	if progress == nil {
		progress = io.Discard
	}
	progress, stop := beat(progress, quietTime)
	defer stop()
	r, err := readRelease("/etc/os-release")
	if err != nil {
		return Image{}, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	img := Image{ID: recipe(r), Source: "Debian " + r.codename}
	err = s.make(ctx, img, func(root string) error { return s.bootstrap(ctx, root, r, progress) })
	if err != nil {
		return Image{}, err
	}
	if err := s.point(name, img.ID); err != nil {
		return Image{}, err
	}
	s.collect(ctx)
	return s.read(name)
}

// recipe is the id of what Build makes.
func recipe(r release) string {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, customize, packages(), dpkg(), r, runtime.GOARCH, nodeRelease, npmRelease)
	return "debian-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// bootstrap fills the root.
func (s *Store) bootstrap(ctx context.Context, root string, r release, progress io.Writer) error {
	list, err := sources("/etc/apt", r)
	if err != nil {
		return err
	}
	work, err := s.newWork()
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := builder{work: work, release: r, sources: list, progress: progress, include: packages()}
	if b.node, b.npm = packNode(ctx, work, progress); b.node == "" || b.npm == "" {
		b.node, b.npm, b.include = "", "", append(b.include, "nodejs", "npm")
	}
	if err := os.WriteFile(filepath.Join(work, "customize.sh"), []byte(customize), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "debian.sources"), []byte(list), 0o644); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return b.asRoot(ctx, root)
	}
	return b.asUser(ctx, func(stream io.Reader) error { return s.unpack(ctx, root, stream) })
}

// builder runs the programs that make a Debian root.
type builder struct {
	work, sources string
	release       release
	include       []string
	node, npm     string
	progress      io.Writer
}

func (b builder) asRoot(ctx context.Context, root string) error {
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return b.run(b.command(ctx, "mmdebstrap", append(b.mmdebstrap("root"), b.release.codename, root, b.file("debian.sources"))...))
	}
	if _, err := exec.LookPath("debootstrap"); err == nil {
		return b.debootstrap(ctx, root)
	}
	return missing()
}

// asUser lets mmdebstrap build in a user namespace of its own, and unpacks what comes out in ours.
func (b builder) asUser(ctx context.Context, unpack func(io.Reader) error) error {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return missing()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := b.command(ctx, "mmdebstrap", append(b.mmdebstrap("unshare"), "--format=tar", b.release.codename, "-", b.file("debian.sources"))...)
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	log := &tail{to: b.progress}
	c.Stderr = log
	if err := c.Start(); err != nil {
		return err
	}
	err = unpack(out)
	if err != nil {
		cancel()
	}
	if failed := c.Wait(); failed != nil {
		return errors.Join(fmt.Errorf("mmdebstrap: %w: %s", failed, log.last()), err)
	}
	return err
}

func missing() error {
	return adapters.Errorf(adapters.KindUnsupported, "mmdebstrap is missing: install it (apt-get install mmdebstrap), or bring an image in with `isthmus images import base FILE`")
}

func (b builder) file(name string) string { return filepath.Join(b.work, name) }

// mmdebstrap are its options. Apt's are those of this machine as far as they say how to reach the sources;
// customize.sh does not leave them in the image.
func (b builder) mmdebstrap(mode string) []string {
	args := []string{"--mode=" + mode, "--variant=minbase", "--include=" + strings.Join(b.include, ","), `--aptopt=Acquire::Languages "none"`}
	for _, o := range aptProxies() {
		args = append(args, "--aptopt="+o)
	}
	for _, o := range dpkg() {
		args = append(args, "--dpkgopt="+o)
	}
	return append(args, `--customize-hook=sh `+b.file("customize.sh")+` "$1"`)
}

// aptProxies are this machine's settings of proxies for apt.
func aptProxies() []string {
	out, err := exec.Command("apt-config", "dump").Output()
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Acquire::http") && strings.Contains(line, "::Proxy") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// debootstrap is the fallback; it knows one source only.
func (b builder) debootstrap(ctx context.Context, root string) error {
	mirror := ""
	for line := range strings.Lines(b.sources) {
		if uris, ok := strings.CutPrefix(line, "URIs:"); ok && mirror == "" {
			mirror, _, _ = strings.Cut(strings.TrimSpace(uris), " ")
		}
	}
	if err := b.run(b.command(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(b.include, ","), b.release.codename, root, mirror)); err != nil {
		return err
	}
	if err := b.run(b.command(ctx, "sh", b.file("customize.sh"), root)); err != nil {
		return err
	}
	list := filepath.Join(root, "etc", "apt", "sources.list")
	if err := os.Remove(list); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(filepath.Join(root, "etc", "apt", "sources.list.d", "debian.sources"), []byte(b.sources), 0o644)
}

// command is a program in a mount namespace of its own when this is root, so that no mount of it outlives
// it. It is asked to end before it is killed.
func (b builder) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "NODE="+b.node, "NPM="+b.npm, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) } // its whole group
	c.WaitDelay = 30 * time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	return c
}

func (b builder) run(c *exec.Cmd) error {
	log := &tail{to: b.progress}
	c.Stdout, c.Stderr = log, log
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, log.last())
	}
	return nil
}

// tail passes output on and remembers its end, where a program says why it failed.
type tail struct {
	to  io.Writer
	end []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.end = append(t.end, b...)
	if len(t.end) > 4096 {
		t.end = append([]byte(nil), t.end[len(t.end)-2048:]...)
	}
	return t.to.Write(b)
}

// last returns the last lines: the very last one often says only that it failed.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.end)), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "; ")
}
