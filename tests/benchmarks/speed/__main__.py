"""The command line: python -m tests.benchmarks.speed run --case dedicated --way stock ours --repeats 3 (as root)."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Sequence

from tests.benchmarks.speed import bounds, report, transfer
from tests.benchmarks.speed.cases import CASES, WAYS, Case, Way
from tests.benchmarks.speed.running import Pace, measure
from tests.hosts import FakeHosts

RESULTS = Path("build/speed.json")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.speed", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="measure; results are added to those in the file")
    run.add_argument("--case", nargs="+", default=["quick"], choices=sorted(CASES))
    run.add_argument("--way", nargs="+", default=sorted(WAYS), choices=sorted(WAYS))
    run.add_argument("--repeats", type=int, default=3)
    run.add_argument("--seconds", type=float, default=Pace().seconds, help="that a measurement takes at least")
    run.add_argument("--steps", type=int, default=Pace().steps, help="that it takes at least")
    run.add_argument("--logs", type=Path, help="folder for the tasks' logs; default: a temporary one")
    show = verbs.add_parser("report", help="print the tables of a file of results")
    for verb in (run, show):
        verb.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.verb == "run":
        pace = Pace(seconds=asked.seconds, steps=asked.steps)
        for name in asked.case:
            compare(CASES[name], [WAYS[way] for way in asked.way], asked.repeats, pace, asked.results, asked.logs)
    print(report.tables(read(asked.results)))


def compare(case: Case, ways: Sequence[Way], repeats: int, pace: Pace, results: Path, logs: Any) -> None:
    """Measures a case in every way, one after the other, and that so often; adds each to ``results`` at once."""
    with FakeHosts(case.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        if case.mbit is not None:
            for host in hosts:
                host.shape(case.mbit)
            _tell_rate(hosts, case.mbit)
        for repeat in range(repeats):
            for way in ways:
                home = Path(logs or folder) / f"{case.name}.{way.name}.{repeat}"
                home.mkdir(parents=True, exist_ok=True)
                found = measure(hosts, case, way, pace, home)
                add(results, {"case": case.name, "way": way.name, "runtime": _runtime(), **found})
                print(
                    f"{case.name:14} {way.name:14} {found['step_ms']:8.1f} ms/step over {found['steps']} steps,"
                    f" processors {100 * found['busy']:.0f} % busy",
                    flush=True,
                )


def _tell_rate(hosts: FakeHosts, mbit: float) -> None:
    found, computed = transfer.bytes_per_s(hosts, mbit) / (mbit * 1e6 / 8), bounds.tcp_share()
    print(f"a socket gets {100 * found:.1f} % of {mbit:g} Mbit/s both ways at once; computed {100 * computed:.1f} %")


def _runtime() -> str:
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}"


def read(results: Path) -> List[Dict[str, Any]]:
    """The measurements of a file; none where there is no file."""
    found: List[Dict[str, Any]] = json.loads(results.read_text()) if results.exists() else []
    return found


def add(results: Path, measured: Dict[str, Any]) -> None:
    """Adds one measurement."""
    lines = ",\n".join(json.dumps(each) for each in [*read(results), measured])
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
