"""The command line: python -m tests.benchmarks.speed run --case dedicated --way stock ours --repeats 3 (as root)."""

import argparse
import fnmatch
import sys
import tempfile
from pathlib import Path
from typing import List, Optional, Sequence

from tests.benchmarks.speed import bounds, headline, horovod, overview, plots, report, transfer
from tests.benchmarks.speed.cases import CASES, WAYS, Case, Way
from tests.benchmarks.speed.results import add, commit, read
from tests.benchmarks.speed.running import ROOT, Failed, Pace, measure
from tests.support.hosts import FakeHosts, MissingError

RESULTS = Path("build/speed.json")
DOCS = Path("docs/measurements")


def main() -> int:
    """Reads the command line; returns 3 where this machine cannot have fake hosts, 1 where a task failed."""
    asked = _parser().parse_args()
    try:
        if asked.verb == "run":
            _run(asked)
    except (MissingError, Failed) as error:
        print(error, file=sys.stderr)
        return 3 if isinstance(error, MissingError) else 1
    if asked.verb == "docs":
        write(read(asked.results), DOCS)
    else:
        found = read(asked.results)
        print(f"{report.tables(found)}\n\n{overview.overview(found)}")
    return 0


def _run(asked: argparse.Namespace) -> None:
    pace = Pace(seconds=asked.seconds, steps=asked.steps)
    cases = [CASES[name] for name in dict.fromkeys(name for names in asked.case for name in names)]
    ways = [WAYS[name] for name in asked.way]
    lacks = horovod.missing() if any(way.ring and case.allows(way) for way in ways for case in cases) else None
    if lacks is not None:
        print(f"ring: skipped: {lacks}", flush=True)
    for case in cases:
        possible = [way for way in ways if case.allows(way) and not (way.ring and lacks)]
        compare(case, possible, asked.repeats, pace, asked.results, asked.logs)


def _cases(pattern: str) -> List[str]:
    """The names of the cases that a pattern of the shell stands for."""
    found = fnmatch.filter(CASES, pattern)
    if not found:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(CASES)}, or a pattern of them, found {pattern}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.speed", description=__doc__)
    verbs = parser.add_subparsers(dest="verb")
    verbs.required = True
    run = verbs.add_parser("run", help="measure; results are added to those in the file")
    run.add_argument("--case", nargs="+", type=_cases, default=[["quick"]], help="names, or patterns: '*-odd'")
    run.add_argument("--way", nargs="+", default=list(WAYS), choices=list(WAYS))
    run.add_argument("--repeats", type=int, default=3)
    run.add_argument("--seconds", type=float, default=Pace().seconds, help="that a measurement takes at least")
    run.add_argument("--steps", type=int, default=Pace().steps, help="that it takes at least")
    run.add_argument("--logs", type=Path, help="folder for the tasks' logs; default: a temporary one")
    show = verbs.add_parser("report", help="print the tables of a file of results")
    docs = verbs.add_parser("docs", help="write the tables and plots of docs/measurements/speed.md; needs matplotlib")
    for verb, path in ((run, RESULTS), (show, RESULTS), (docs, DOCS / "speed/speed.json")):
        verb.add_argument("--results", type=Path, default=path)
    return parser


def compare(
    case: Case, ways: Sequence[Way], repeats: int, pace: Pace, results: Path, logs: Optional[Path] = None
) -> None:
    """Measures a case in every way, one after the other, and that so often; adds each to ``results`` at once."""
    with FakeHosts(case.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        share = None if case.mbit is None else _shape(hosts, case.mbit)
        for repeat in range(repeats):
            for way in ways:
                home = Path(logs or folder) / f"{case.name}.{way.name}.{repeat}"
                home.mkdir(parents=True, exist_ok=True)
                python = "{}.{}".format(*sys.version_info)
                of = {"case": case.name, "way": way.name, "commit": commit(ROOT), "python": python, "socket": share}
                found = measure(hosts, case, way, pace, home)
                add(results, {**of, **found})
                print(
                    f"{case.name:14} {way.name:14} {found['step_ms']:8.1f} ms/step over {found['steps']} steps,"
                    f" processors {100 * found['busy']:.0f} % busy",
                    flush=True,
                )


def _shape(hosts: FakeHosts, mbit: float) -> float:
    """Slows every card down; returns the part of ``mbit`` that a socket then gets."""
    for host in hosts:
        host.shape(mbit)
    share, computed = transfer.bytes_per_s(hosts, mbit) / (mbit * 1e6 / 8), bounds.tcp_share()
    print(f"a socket gets {100 * share:.1f} % of {mbit:g} Mbit/s both ways at once; computed {100 * computed:.1f} %")
    return share


def write(results: Sequence[report.Result], docs: Path) -> None:
    """The page and its pictures."""
    page = docs / "speed.md"
    page.write_text(overview.page(report.page(page.read_text(), results), results))
    plots.draw(results, docs / "speed")
    (docs / "speed" / "headline.svg").write_text(headline.chart(results))


if __name__ == "__main__":
    sys.exit(main())
