"""Trains every model in every way and compares: python -m tests.differential, make differential ARGS="--sample"

Exit code 1 if any differs. What differs or is refused has a line; then come a table and the number of each kind.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, List, Optional, Sequence

from tests.differential.asking import ROOT
from tests.differential.authors import RUNTIMES, every
from tests.differential.carrying_out import TIMEOUT_S, Bench, Result, ready
from tests.differential.tables import numbers, page, table
from tests.differential.verdict import DIFFERENT, REFUSED
from tests.differential.ways import AXES, Case, pairwise, product, sample

PAGE = ROOT / "docs" / "measurements" / "differential.md"


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 1 if any model differs in any way, else 0."""
    options = _options(argv)
    results = report(_chosen(options), options)
    if options.docs:
        PAGE.write_text(page(results, every()), encoding="utf-8")
    return int(any(result.verdict.kind == DIFFERENT for result in results))


def report(cases: Sequence[Case], options: argparse.Namespace, rows: bool = True) -> List[Result]:
    """Carries out the cases and prints what comes of them; with ``rows``, in a table, too."""
    folder = Path(options.folder or ROOT / "build" / "differential")
    bench = Bench(folder, options.jobs, options.timeout)
    print(f"{len(cases)} cases; logs are in {folder}", flush=True)
    results = []
    for result in bench.carry_out(cases):
        results.append(result)
        if options.verbose or result.verdict.kind in (DIFFERENT, REFUSED):
            print(f"{result.verdict.kind}: {result.case}: {result.verdict.text}", flush=True)
    print("\n".join([*(["", *table(results), ""] if rows else []), numbers(results)]), flush=True)
    return results


def _chosen(options: argparse.Namespace) -> List[Case]:
    authors = [author for name, author in every().items() if not options.only or name in options.only]
    cases = product(authors, ready(options.runtime or RUNTIMES))
    for axis in AXES:
        allowed = getattr(options, axis)
        cases = [case for case in cases if not allowed or str(getattr(case.way, axis)) in allowed]
    return sample(cases) if options.sample else pairwise(cases) if options.pairs else cases


def common(description: Optional[str]) -> argparse.ArgumentParser:
    """The options that every command of this folder has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many cases at a time (2)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds, after which a case hangs (60)")
    parser.add_argument("--folder", help="where logs and the references' variables are kept (build/differential)")
    parser.add_argument("--verbose", action="store_true", help="a line for those that are equal, too")
    for axis, values in AXES.items():
        parser.add_argument(f"--{axis}", nargs="+", choices=[str(value) for value in values], help="only these")
    return parser


def _options(argv: Optional[List[str]]) -> Any:
    parser = common(__doc__)
    parser.add_argument("--only", nargs="+", metavar="MODEL", choices=sorted(every()), help="only these models")
    parser.add_argument("--sample", action="store_true", help="each model in one way, all pairs of a way's values")
    parser.add_argument("--pairs", action="store_true", help="all pairs of a model and a value, too")
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE.name}, too")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
