//go:build linux

package boxes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus/isthmus/adapters"
)

// furnish makes the box's file system and network, and becomes its first process. That collects orphans, and
// ends when its input does, so that boxes do not outlive the test.
const furnish = `set -e
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/up",workdir="$2/work" "$2/root"
cd "$2/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
ip link set lo up
exec chroot . /bin/sh -c 'exec 3<&0; echo ready; cat <&3 >/dev/null & wait $!'`

// endTime bounds the wait for the end of a box that was told to end.
const endTime = 20 * time.Second

// machine is one box.
type machine struct {
	spec    adapters.Spec
	dir     string
	created time.Time
	// turn is held by whoever pauses, resumes or copies the box.
	turn sync.Mutex

	mu     sync.Mutex
	now    *run          // nil: it was not started yet
	ended  chan struct{} // closed when it has ended; a pause is no end
	paused adapters.Level
	timer  *time.Timer
	port   *front
}

// run is the time from one start of a box to the end of its first process.
type run struct {
	pid  int            // of the first process, as seen from outside
	life io.WriteCloser // the first process ends with it
	over chan struct{}  // closed when it has ended
}

// start makes the box and returns when programs can be started in it.
func (m *machine) start(ctx context.Context, root string) error {
	for _, folder := range []string{"up", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(m.dir, folder), 0o755); err != nil {
			return err
		}
	}
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private",
		"/bin/sh", "-c", furnish, "box", root, m.dir)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = said, &log
	err = cmd.Start()
	_ = said.Close()
	if err != nil {
		return err
	}
	current := &run{life: life, over: make(chan struct{})}
	m.mu.Lock()
	m.now = current
	m.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		m.stopped(current)
	}()
	defer context.AfterFunc(ctx, func() { _ = life.Close() })()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		_ = life.Close()
		<-current.over
		return fmt.Errorf("the box ended at once: %s", bytes.TrimSpace(log.Bytes()))
	}
	pid, err := firstChild(cmd.Process.Pid)
	if err != nil {
		return err
	}
	m.mu.Lock()
	current.pid = pid
	m.mu.Unlock()
	m.until(m.spec.Envd.Deadline)
	return ctx.Err()
}

// firstChild is the one child that unshare has.
func firstChild(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// stopped notes that a run has ended. Unless the box was paused, that is its end.
func (m *machine) stopped(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = r.life.Close()
	close(r.over)
	if m.port != nil {
		m.port.close()
		m.port = nil
	}
	if m.paused == "" {
		m.finish()
	}
}

// finish tells that the box has ended, once. The caller holds mu.
func (m *machine) finish() {
	if m.timer != nil {
		m.timer.Stop()
	}
	select {
	case <-m.ended:
	default:
		close(m.ended)
	}
}

// until ends the box at a time.
func (m *machine) until(deadline time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	if !deadline.IsZero() {
		m.timer = time.AfterFunc(time.Until(deadline), func() { _ = m.end(context.Background()) })
	}
}

// end ends the box, with all its processes, and returns when they have ended.
func (m *machine) end(ctx context.Context) error {
	m.mu.Lock()
	current, frozen := m.now, m.paused == adapters.LevelMemory
	m.paused = ""
	if current == nil || closed(current.over) {
		m.finish()
	}
	m.mu.Unlock()
	if current == nil {
		return nil // nothing was started yet
	}
	if frozen {
		if err := m.signal(unix.SIGCONT); err != nil {
			return adapters.Wrap(adapters.KindUnavailable, err, "the box does not go on, so that it cannot end")
		}
	}
	return current.end(ctx)
}

// end ends the first process, and all others with it.
func (r *run) end(ctx context.Context) error {
	_ = r.life.Close()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return adapters.Wrap(adapters.KindUnavailable, ctx.Err(), "the box does not end")
	}
}

func (m *machine) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !closed(m.ended)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// process is the first process, by its id outside.
func (m *machine) process() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil {
		return 0
	}
	return m.now.pid
}

func (m *machine) describe() adapters.Box {
	m.mu.Lock()
	defer m.mu.Unlock()
	return adapters.Box{
		ID: m.spec.BoxID, Attempt: m.spec.Attempt, Deployment: m.spec.Deployment, SandboxID: m.spec.Envd.SandboxID,
		CreatedAt: m.created, Alive: !closed(m.ended), Paused: m.paused != "",
	}
}
