"""Runs every area with the client of this interpreter, and prints one JSON line for each:
{"area": "files", "result": "passed" | "absent" | "failed", "detail": "..."}.
Usage: python program.py [AREA...]. The client reads E2B_DOMAIN and E2B_API_KEY by itself."""

import json
import secrets
import signal
import sys
import traceback

from areas import AREAS
from e2b import Sandbox
from support import Absent, create

AREA_SECONDS = 90


def outcome(run, box, marker):
    signal.alarm(AREA_SECONDS)
    try:
        run(box, marker)
        return {"result": "passed"}
    except Absent:
        return {"result": "absent"}
    except Exception:
        return {"result": "failed", "detail": traceback.format_exc()}
    finally:
        signal.alarm(0)


def late(*_):
    raise TimeoutError(f"not done within {AREA_SECONDS} s")


def main(chosen):
    signal.signal(signal.SIGALRM, late)
    marker = secrets.token_hex(6)
    box = create(
        Sandbox, template="base", timeout=300, metadata={"marker": marker, "a b": "c&d=é"}, envs={"MARKER": marker}
    )
    try:
        for area, run in AREAS.items():
            if not chosen or area in chosen:
                print(json.dumps({"area": area, **outcome(run, box, marker)}), flush=True)
    finally:
        box.kill()


main(sys.argv[1:])
