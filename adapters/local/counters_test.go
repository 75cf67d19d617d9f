//go:build linux

package local_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the kernel counts by user: one box takes all that it can have, by many users, and another one must still
// get its share.
func TestCountersAreABoxsOwn(t *testing.T) {
	l := open(t)
	greedy, other := create(t, l), create(t, l)
	for name, take := range map[string]string{
		"signals that wait": `
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
def take(): return libc.sigqueue(os.getpid(), 40, None) == 0`,
		"timers": `
timer = ctypes.c_void_p()
def take(): return libc.timer_create(1, None, ctypes.byref(timer)) == 0`,
		"bytes of message queues": `
names = itertools.count()
def take(): return libc.mq_open(b"/%d-%d" % (os.getpid(), next(names)), os.O_CREAT | os.O_RDWR, 0o600, struct.pack("qqqq32x", 0, 10, 1024, 0)) >= 0`,
		"inotify instances": `
def take(): return libc.inotify_init1(0) >= 0`,
	} {
		t.Run(name, func(t *testing.T) {
			r := sh(t, l, greedy, "root", taker(take, 14, 1<<20))
			require.Equal(t, "taken\n", r.stdout, r.stderr)
			r = sh(t, l, other, "user", taker(take, 1, 8))
			require.Equal(t, "8\n", r.stdout, r.stderr)
		})
	}
}

// taker is a shell command that starts programs of so many users, of whom each takes so much and keeps it. It
// prints what the only one of them has.
func taker(take string, users, most int) string {
	return fmt.Sprintf(`exec python3 -c '
import ctypes, itertools, os, signal, struct, time
libc = ctypes.CDLL(None)
%s
counts = []
for n in range(%d):
    mine, its = os.pipe()
    if os.fork() == 0:
        for fd in range(3): os.dup2(os.open("/dev/null", os.O_RDWR), fd)
        if os.getuid() == 0: os.setresuid(3000 + n, 3000 + n, 3000 + n)
        count = 0
        while count < %d and take(): count += 1
        os.write(its, b"%%d\n" %% count)
        os.close(its)
        time.sleep(600)
    os.close(its)
    counts.append(os.read(mine, 20).decode())
print(counts[0] if len(counts) == 1 else "taken", end="\n" if len(counts) > 1 else "")
'`, take, users, most)
}
