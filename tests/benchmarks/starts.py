"""How long a start takes until every worker has taken a step, and what each role holds then: make bench-starts.

`launch up` over SSH, from the shell's fork on, beside TensorFlow's textbook script, whose processes are started by
nobody's launcher. Both train 36.5 MB in 47 variables of odd shapes on fake hosts, a task on each, in turn. What every
task does on its way is listed with the second in which it was first seen.
"""

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Set

from tests.benchmarks.launched import PATIENCE_S, launched
from tests.benchmarks.speed.cases import CASES, WAYS
from tests.benchmarks.speed.memory import peaks_mb
from tests.benchmarks.speed.running import Cluster
from tests.support.hosts import FakeHosts, MissingError

POLL_S = 0.1
_RUNS = "root/root/.launch/runs"
_STEPPED = "has taken a step"


class Start(NamedTuple):
    """Seconds until every worker had taken a step, and the peak memory of each role in megabytes."""

    seconds: float
    chief_mb: float
    worker_mb: float
    ps_mb: float


def textbook(hosts: FakeHosts, number: int, folder: Path) -> Start:
    """Starts the textbook's script, and ends it."""
    case = dataclasses.replace(CASES["two-odd"], workers=number, ps=number)
    began = time.monotonic()
    joined: Set[int] = set()
    with Cluster(hosts, case, WAYS["stock"], folder) as cluster:
        while len(joined) < number:
            joined.add(cluster.next_stamp()[0])
        return _start(hosts, time.monotonic() - began)


def ours(hosts: FakeHosts, number: int, folder: Path) -> Start:
    """Starts a run with `launch up`, prints what its tasks did meanwhile, and ends it."""
    began = time.monotonic()
    with launched(hosts, number, folder) as up:
        _watch(hosts, folder.name, number, up, began)
        return _start(hosts, time.monotonic() - began)


def _watch(hosts: FakeHosts, name: str, number: int, up: Any, began: float) -> None:
    """Waits until every worker has told of a step; prints what each was seen to do when."""
    seen: Dict[str, Dict[str, float]] = {}
    while sum(_STEPPED in each for each in seen.values()) < number:
        if up.poll() is not None or time.monotonic() - began > PATIENCE_S:
            raise RuntimeError(f"expected a step of every worker, found `launch up` {up.returncode}; see its log")
        for host in hosts:
            for folder in Path(f"/proc/{host.init()}/{_RUNS}").glob(f"{name}-*/*.*"):
                seen.setdefault(folder.name, {}).setdefault(_doing(folder), time.monotonic() - began)
        time.sleep(POLL_S)
    for task, phases in sorted(seen.items()):
        print(f"  {task:10}", "; ".join(f"{at:.1f} s {doing}" for doing, at in phases.items()), file=sys.stderr)


def _doing(folder: Path) -> str:
    if folder.name.startswith("worker") and (folder / "progress.json").exists():
        return _STEPPED
    try:
        sign = json.loads((folder / "pulse.json").read_text())
    except (OSError, ValueError):
        return "it is placed"
    return str(sign["doing"] or sign["phase"])


def _start(hosts: FakeHosts, seconds: float) -> Start:
    peaks = peaks_mb(hosts)
    return Start(seconds, peaks["chief"], peaks.get("worker", peaks["chief"]), peaks["ps"])


def compare(number: int, mbit: Optional[float], repeats: int) -> None:
    """Prints a row for each way: the medians, and what the time is of the textbook's."""
    ways = {"the textbook's script": textbook, "`launch up`": ours}
    found: Dict[str, List[Start]] = {way: [] for way in ways}
    with FakeHosts(2 * number) as hosts, tempfile.TemporaryDirectory() as home:
        for host in hosts:
            if mbit is not None:
                host.shape(mbit)
        for repeat in range(repeats):
            for index, (way, start) in enumerate(ways.items()):
                folder = Path(home) / f"start-{repeat}-{index}"
                folder.mkdir()
                found[way].append(start(hosts, number, folder))
    floor = statistics.median(each.seconds for each in found["the textbook's script"])
    for way, starts in found.items():
        seconds, *memory = (statistics.median(values) for values in zip(*starts))
        cells = " | ".join(f"{value:.0f}" for value in memory)
        print(f"| {number} + {number} | {way} | {seconds:.1f} | {seconds / floor:.2f} | {cells} |", flush=True)


def main() -> int:
    """Returns 3 where this machine cannot have fake hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[2, 4], help="workers, and as many ps (2 4)")
    parser.add_argument("--mbit", type=float, default=250.0, help="of every network card; 0: no limit (250)")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    print("| workers + ps | way | seconds | over the textbook | chief MB | worker MB | ps MB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    try:
        for number in asked.size:
            compare(number, asked.mbit or None, asked.repeats)
    except MissingError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
