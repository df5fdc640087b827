"""The command line: python -m tests.benchmarks.recommend run --case dlrm:2x4 dlrm:2x4:100 --repeats 3 (as root)."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import List, Sequence

from tests.benchmarks.recommend import report
from tests.benchmarks.recommend.cases import SYSTEMS, Case, System, case_of
from tests.benchmarks.recommend.running import Failed, Pace, files, keys_of, measure
from tests.benchmarks.speed.results import add, read
from tests.support.hosts import FakeHosts, MissingError

RESULTS = Path("build/recommend.json")
DOCS = Path("docs/measurements")


def main() -> int:
    """Read the command line; return 3 where this machine cannot have fake hosts."""
    parser = _parser()
    asked = parser.parse_args()
    if asked.verb == "run" and asked.steps <= 2 * asked.warm:
        parser.error(f"--steps: expected more than twice the {asked.warm} steps of --warm, found {asked.steps}")
    if asked.verb == "docs":
        page = DOCS / "recommend.md"
        page.write_text(report.page(page.read_text(), read(asked.results)))
    elif asked.verb == "report":
        print(report.tables(read(asked.results)))
    else:
        try:
            for case in asked.case:
                compare(case, [SYSTEMS[name] for name in asked.system], asked)
        except MissingError as error:
            print(error, file=sys.stderr)
            return 3
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.recommend", description=__doc__)
    verbs = parser.add_subparsers(dest="verb")
    verbs.required = True
    run = verbs.add_parser("run", help="measure; results are added to those in the file")
    run.add_argument("--case", nargs="+", type=case_of, default=[Case("dlrm", 2, 4)], help="such as dlrm:2x4:100")
    run.add_argument("--system", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    run.add_argument("--repeats", type=int, default=3)
    run.add_argument("--steps", type=int, default=240, help="of all workers, in all")
    run.add_argument("--warm", type=int, default=40, help="steps that are not timed, at the beginning and at the end")
    run.add_argument("--logs", type=Path, help="folder for the tasks' logs; default: a temporary one")
    show = verbs.add_parser("report", help="print the tables of a file of results")
    docs = verbs.add_parser("docs", help="write the tables of docs/measurements/recommend.md")
    for verb, path in ((run, RESULTS), (show, RESULTS), (docs, DOCS / "recommend.json")):
        verb.add_argument("--results", type=Path, default=path)
    return parser


def compare(case: Case, systems: Sequence[System], asked: argparse.Namespace) -> None:
    """Measure a case with every system, one after the other, and that so often; add each result at once."""
    pace = Pace(asked.steps, asked.warm)
    files(case, pace.steps)
    number = max(len(keys_of(case, system)) for system in systems)
    with FakeHosts(number) as hosts, tempfile.TemporaryDirectory() as folder:
        for host in hosts:
            if case.mbit is not None:
                host.shape(case.mbit)
        for repeat in range(asked.repeats):
            for system in systems:
                logs = Path(asked.logs or folder) / f"{case.name}.{system.name}.{repeat}"
                logs.mkdir(parents=True, exist_ok=True)
                _measure(hosts, case, system, pace, logs, asked.results)


def _measure(hosts: FakeHosts, case: Case, system: System, pace: Pace, logs: Path, results: Path) -> None:
    load = os.getloadavg()[0]
    try:
        found = measure(hosts, case, system, pace, logs)
    except Failed as error:
        print(f"{case.name:22} {error}\n{_tails(logs)}", file=sys.stderr, flush=True)
        return
    add(results, {"case": case.name, "system": system.name, "load_before": load, **found})
    print(
        f"{case.name:22} {system.name:20} {found['examples_per_s']:8.0f} examples/s,"
        f" {found['examples_per_cpu_s']:.0f} a processor second, auc {found['auc']:.4f},"
        f" {found['received_kb']:.0f} + {found['sent_kb']:.0f} kB a step and worker, first step after"
        f" {found['first_step_s']:.0f} s, {found['cores']:.2f} of {found['busy_cores']:.2f} busy cores",
        flush=True,
    )


def _tails(logs: Path) -> str:
    last: List[str] = [f"--- {path.name}\n{path.read_text()[-1500:]}" for path in sorted(logs.iterdir())]
    return "\n".join(each for each in last if each.count("\n") > 1)


if __name__ == "__main__":
    sys.exit(main())
