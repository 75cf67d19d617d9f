package spawn

import (
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Every process of a client is the first to go when memory runs out, before the daemon, and shares the disk
// and the processors as an ordinary process does, whatever the daemon's own priority is.
const (
	oomScoreAdj = 100
	// ioPriority is class best-effort (2), level 4: what a process has by default.
	ioPriority = 2<<13 | 4
	nice       = 0
)

// shell runs an executable without a format that the kernel knows, as execvp does.
const shell = "/bin/sh"

// Command says what to start.
type Command struct {
	// Path is the executable; a relative one is below Dir. Args[0] is the name that it sees.
	Path string
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is absolute, and entered with the rights of the user.
	Dir string
	// Credential is the user to become; nil stays the daemon's.
	Credential *syscall.Credential
	// Stdio are standard input, output and error: all that the process inherits.
	Stdio [3]*os.File
	// Terminal makes the process the leader of a session whose terminal is its standard input.
	Terminal bool
}

// Start forks and executes. The error is the kernel's syscall.Errno from whichever step failed: entering the
// folder, becoming the user, or executing.
func (r *Reaper) Start(c Command) (*Process, error) {
	// Files are kept open by c.Stdio; Fd would set them blocking, which is what a program expects of them.
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Sys: &syscall.SysProcAttr{
		Credential: c.Credential, Setsid: c.Terminal, Setctty: c.Terminal,
	}}
	for _, f := range c.Stdio {
		attr.Files = append(attr.Files, f.Fd())
	}
	r.forking.RLock()
	defer r.forking.RUnlock()
	pid, err := fork(c.Path, c.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		pid, err = fork(shell, append([]string{shell, c.Path}, c.Args[1:]...), attr)
	}
	runtime.KeepAlive(c.Stdio)
	if err != nil {
		return nil, err
	}
	settle(pid)
	if r.limit > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: r.limit, Max: r.limit}, nil)
	}
	return r.add(pid), nil
}

// fork sets the I/O priority on the thread that forks: across users it is refused afterwards.
func fork(path string, args []string, attr *syscall.ProcAttr) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = unix.RawSyscall(unix.SYS_IOPRIO_SET, 1 /* one thread */, 0 /* this one */, ioPriority)
	return syscall.ForkExec(path, args, attr)
}

// settle sets what can be set on a running process. Where the daemon may not, the process keeps what it
// inherited: that is worse for the machine, never wrong for the program.
func settle(pid int) {
	f, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", os.O_WRONLY, 0)
	if err == nil {
		_, _ = f.WriteString(strconv.Itoa(oomScoreAdj))
		_ = f.Close()
	}
	// The kernel's answer is 20 minus the nice value.
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && 20-now != nice {
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, nice)
	}
}

// Seal keeps every descriptor that the daemon was itself given from being inherited further: a process gets its
// three and nothing else.
func Seal() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// A kernel older than the flag.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
