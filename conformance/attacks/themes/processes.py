"""Processes of the host and PID 1 of the sandbox."""

BOTH = ["user", "root"]


CASES = [
    {"name": "see processes of the host", "as_users": BOTH, "expect": "own", "script": """
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: text = read(f"/proc/{pid}/cmdline") + (read(f"/proc/{pid}/environ") if int(pid) != 1 else b"")
    except OSError: continue
    say(pid, "of the host" if HOST["marker"].encode() in text or b"isthmus" in text else "own")
"""},
    {"name": "signal processes of the host", "as_users": BOTH, "expect": "ESRCH|ENOENT", "script": """
say("by number", attempt(os.kill, HOST["pid"] + 100000, 0))
say("bait's number", "ESRCH" if attempt(os.kill, HOST["pid"], 0) != "ok" or os.path.exists(f"/proc/{HOST['pid']}") else "ok")
for pid in (2, HOST["pid"]):
    if not os.path.exists(f"/proc/{pid}"): say(f"pidfd {pid}", call("pidfd_open", pid, 0))
"""},
    {"name": "signal everything, PID 1 included", "as_users": BOTH, "expect": "alive", "script": """
# Root may end its own box as it may halt a machine (a Go program dies of SIGSEGV and SIGABRT): not by these.
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
    attempt(os.kill, 1, number)
time.sleep(0.3)
say("PID 1", "alive" if open("/proc/1/stat").read().split(") ")[1][0] in "SRD" else "stopped")
"""},
    {"name": "trace and read PID 1", "as_users": BOTH, "expect": "EPERM|EACCES|ENOSYS", "script": """
say("attach", call("ptrace", 16, 1, 0, 0))
say("seize", call("ptrace", 0x4206, 1, 0, 0))
buffer = ctypes.create_string_buffer(64)
local = struct.pack("PN", ctypes.addressof(buffer), 64)
remote = struct.pack("PN", 0x400000, 64)
say("process_vm_readv", call("process_vm_readv", 1, local, 1, remote, 1, 0))
fd = number("pidfd_open", 1, 0)
for other in range(16):
    say(f"pidfd_getfd {other}", call("pidfd_getfd", fd, other, 0) if fd >= 0 else "EPERM")
say("kcmp", call("kcmp", 1, os.getpid(), 0, 1, 1))
say("process_madvise", call("process_madvise", fd, remote, 1, 4, 0))
"""},
    # Root inside may: it harms its own box only, see the agent's case "an agent without descriptors".
    {"name": "limits of PID 1", "as_users": ["user"], "expect": "EPERM|ENOSYS", "script": """
for resource in (7, 6, 9, 0, 8):
    say(f"prlimit {resource}", call("prlimit64", 1, resource, struct.pack("QQ", 0, 0), 0))
"""},
    {"name": "rank above the host: nice, real time, out of memory", "as_users": BOTH, "expect": "EPERM|EACCES", "script": """
say("nice", attempt(os.setpriority, os.PRIO_PROCESS, 0, -5))
say("fifo", attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(10)))
say("deadline", call("sched_setattr", 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8), 0))
def score(pid, value):
    fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY)
    os.write(fd, value)
say("oom_score_adj", attempt(score, "self", b"-900"))
say("oom_score_adj of 1", attempt(score, "1", b"-900"))
import resource
for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK):
    soft, hard = resource.getrlimit(what)
    say(f"limit {what}", "EPERM" if attempt_value(resource.setrlimit, what, (hard + 1, hard + 1)) else "raised")
""".replace("import resource", """import resource
def attempt_value(function, *arguments):
    try: function(*arguments)
    except (ValueError, OSError): return True
    return False""")},
]
