"""Runs the attacks: one line per case, then 'N passed, N unenforced, N failed'; the exit status is 1 when one failed."""

import importlib
import os
import pathlib
import re
import signal
import sys
import threading
import time
from collections import Counter

from e2b import CommandExitException, Sandbox

from bait import Bait
from world import World

HERE = pathlib.Path(__file__).parent
FOLDER = "/home/user/attack"
LIMIT = 120  # seconds that one script may take


def themes(words):
    """Every case of every theme that one of the words selects."""
    for file in sorted((HERE / "themes").glob("[a-z]*.py")):
        for case in importlib.import_module(f"themes.{file.stem}").CASES:
            if not words or any(word == file.stem or word in f"{file.stem}: {case['name']}" and " " in word for word in words):
                yield file.stem, case


def outfit(box, bait, script):
    """Puts an attack and what it needs into a sandbox; the command that starts it."""
    box.files.write_files([
        {"path": f"{FOLDER}/inside.py", "data": (HERE / "inside.py").read_text()},
        {"path": f"{FOLDER}/host.json", "data": bait.description()},
        {"path": f"{FOLDER}/attack.py", "data": "from inside import *\n" + script},
    ])
    return f"cd {FOLDER} && exec python3 -B attack.py 2>&1"


def run(box, bait, script, user):
    """The lines that a script says."""
    try:
        return box.commands.run(outfit(box, bait, script), user=user, timeout=LIMIT).stdout.splitlines()
    except CommandExitException as ended:
        return [*ended.stdout.splitlines(), f"the script: exit {ended.exit_code}"]


def run_beside(box, other, bait, case, user):
    """The lines of the script, and those of the second script that runs while the first one holds."""
    said, holding = [], threading.Event()
    handle = box.commands.run(outfit(box, bait, case["script"]), user=user, timeout=LIMIT, background=True)

    def listen(text):
        said.append(text)
        if "holding" in text:
            holding.set()

    def wait():
        try:
            handle.wait(on_stdout=listen)
        except Exception as end:  # the attack may well have killed its own agent: that is its own affair
            said.append(f"the script: {type(end).__name__}\n")
        holding.set()

    threading.Thread(target=wait, daemon=True).start()
    holding.wait(LIMIT)
    after = run(other, bait, case["then"], "user")
    lines = [line for line in "".join(said).splitlines() if line != "holding"]
    return lines, after


def faults(lines, expect):
    """What a refusal does not look like."""
    if not lines:
        return ["nothing was said"]
    return [line for line in lines if not re.fullmatch(expect, line.rpartition(": ")[2], re.DOTALL)]


def play(bait, case, user):
    """Runs one case as one user; the faults, and all that was said."""
    bait.touched.clear()
    options = {"timeout": 300, **case.get("create", {})}
    with Sandbox.create(**options) as box, Sandbox.create(timeout=300) as other:
        if "do" in case:
            lines = case["do"](World(box, other, bait, user, lambda script, as_user=user: run(box, bait, script, as_user)))
            wrong = faults(lines, case["expect"])
        elif "then" in case:
            lines, after = run_beside(box, other, bait, case, user)
            wrong = faults(lines, case["expect"]) + [f"beside it: {line}" for line in faults(after, case["then_expect"])]
            lines = [*lines, *(f"beside it: {line}" for line in after)]
        else:
            lines = run(box, bait, case["script"], user)
            wrong = faults(lines, case["expect"])
    wrong += [f"the bait was reached: {touch}" for touch in bait.touched]
    if not bait.intact():
        wrong.append("the bait on the host was harmed")
    return wrong, lines


def verdict(case, wrong) -> str:
    """What a case has come to. An attack on a limit that the server says it does not enforce is no fault of its own."""
    stated = case.get("needs") in os.environ.get("ATTACKS_UNENFORCED", "").split(",") and "needs" in case
    if wrong and stated and not any("bait" in line or "could not be run" in line for line in wrong):
        return "unenforced"
    return "FAILED" if wrong else "passed"


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the bait is removed then, too
    bait, counts = Bait(), Counter()
    verbose = bool(os.environ.get("ATTACKS_VERBOSE"))
    try:
        bait.check()
        for theme, case in themes(sys.argv[1:]):
            for user in case["as_users"]:
                start = time.monotonic()
                try:
                    wrong, lines = play(bait, case, user)
                except Exception as failure:
                    wrong, lines = [f"the case could not be run: {type(failure).__name__}: {failure}"], []
                came_to = verdict(case, wrong)
                counts[came_to] += 1
                print(f"{came_to} {theme}: {case['name']} (as {user}, {time.monotonic() - start:.1f} s)", flush=True)
                for line in lines if verbose else wrong[:8]:
                    print(f"       {line}", flush=True)
                if verbose and wrong:
                    print("       wrong: " + " | ".join(wrong), flush=True)
    finally:
        bait.remove()
    print(f"{counts['passed']} passed, {counts['unenforced']} unenforced, {counts['FAILED']} failed")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
