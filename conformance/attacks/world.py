"""What a case that runs outside the sandbox is given."""

import os
from dataclasses import dataclass
from typing import Callable

from e2b import Sandbox

from bait import Bait


def required(name: str) -> str:
    """The value of one ATTACKS_* variable; a case that needs it fails without."""
    value = os.environ.get(name, "")
    if not value:
        raise RuntimeError(f"set {name}: README.md says what it is")
    return value


@dataclass
class World:
    """A sandbox to attack from, another one, the bait, and the user that attacks."""

    box: Sandbox
    other: Sandbox
    bait: Bait
    user: str
    run: Callable[..., list[str]]

    def descriptors(self) -> int:
        """How many descriptors the server has open."""
        return len(os.listdir(f"/proc/{required('ATTACKS_SERVER_PID')}/fd"))

    def memory(self) -> int:
        """Resident memory of the server in MiB."""
        with open(f"/proc/{required('ATTACKS_SERVER_PID')}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10

    def processes(self, word: str) -> list[int]:
        """Processes of the host that have the word in their command line or environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as cmdline, open(f"/proc/{pid}/stat") as stat:
                    if word.encode() in cmdline.read() and stat.read().rsplit(") ", 1)[1][0] not in "ZX":
                        found.append(int(pid))
            except OSError:
                continue
        return found
