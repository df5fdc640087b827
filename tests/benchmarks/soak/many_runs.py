"""Many runs, one after the other: what each leaves behind.

One launcher starts runs of three tasks on this machine, one after the other; every tenth fails. After each it looks for
processes that still live, and counts files, and its own descriptors, threads and memory. Whatever grows after the first
fifth is a leak: the exit code is 1. Runs of the last hour are never removed, whatever ``keep`` is. So the files of a
run, and those that belong to none, are counted apart.
"""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import List, NamedTuple

from launch.agent.linux import processes
from tests.benchmarks.soak.files import below, sizes
from tests.support.launch.launcher import Launcher
from tests.support.launch.machine import living_under

FAILS_EVERY = 10
SCRIPT = "for step in 1 2 3; do echo step $step; done; {end}"
FEWEST = 5 * FAILS_EVERY  # so that one of the first fifth fails
MOST_MORE_KB = 4096  # of memory, after the first fifth


class Left(NamedTuple):
    """What is there after a run."""

    run: int
    seconds: float
    of_run: int  # files
    of_run_kib: int
    others: int
    others_kib: int
    descriptors: int
    threads: int
    rss_kb: int


def soak(folder: Path, runs: int) -> List[Left]:
    """Start runs, and return what each has left. Raises RuntimeError for one that ends otherwise than it should."""
    launch, found = Launcher(folder), []
    for run in range(1, runs + 1):
        fails = run % FAILS_EVERY == 0
        launch.write(SCRIPT.format(end="exit 3" if fails else "exit 0"))
        began = time.monotonic()
        ended = launch("up")
        if ended.returncode != int(fails):
            raise RuntimeError(f"run {run}: expected exit code {int(fails)}, found {ended.returncode}\n{ended.stderr}")
        alive = [str(process) for process in living_under(folder)]
        if alive:
            raise RuntimeError(f"run {run}: still alive: {', '.join(alive)}")
        found.append(_look(folder, run, time.monotonic() - began))
        if run % max(1, runs // 10) == 0:
            print(_row(found[-1]), flush=True)
    return found


def growth(found: List[Left]) -> List[str]:
    """Return what has grown since the first fifth of the runs."""
    early, late = found[: len(found) // 5], found[-FAILS_EVERY:]
    bounds = {
        "of_run": 0,
        "of_run_kib": 4,
        "others": 0,
        "others_kib": 4,
        "descriptors": 0,
        "threads": 0,
        "rss_kb": MOST_MORE_KB,
    }
    return [
        f"{name}: {before} at most in the first {len(early)} runs, {after} at most in the last {len(late)}"
        for name, more in bounds.items()
        for before, after in [[max(getattr(each, name) for each in some) for some in (early, late)]]
        if after > before + more
    ]


def _look(folder: Path, run: int, seconds: float) -> Left:
    runs = folder / "w" / "runs"
    of_run = sizes(below(max(runs.iterdir(), key=lambda each: each.stat().st_mtime)))
    others = sizes(below(folder, leave_out=[runs]))
    rss_kb = int(processes.status(os.getpid())["VmRSS"].split()[0])
    return Left(run, seconds, *of_run, *others, len(os.listdir("/proc/self/fd")), threading.active_count(), rss_kb)


def _row(left: Left) -> str:
    return (
        f"| {left.run} | {left.seconds:.1f} | {left.of_run}, {left.of_run_kib} KiB | {left.others},"
        f" {left.others_kib} KiB | {left.descriptors} | {left.threads} | {left.rss_kb / 1024:.0f} |"
    )


def measure(runs: int) -> int:
    """Print a row for every tenth of the runs; return the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    os.environ["HOME"] = str(folder)  # so that what the launcher remembers is counted, too
    print(f"| run | s | files of it | other files | descriptors | threads | launcher MB |\n|{'---:|' * 7}")
    try:
        grown = growth(soak(folder, runs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["", *(grown or ["nothing has grown"])]))
    return 1 if grown else 0
