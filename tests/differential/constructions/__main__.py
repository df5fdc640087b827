"""Trains what seeds draw, beside plain TensorFlow: python -m tests.differential.constructions --seeds 1000

Exit code 1 if any differs; `--seed N` is a single one again. What differs has a line; then come the rows that the seeds
meet, with how many of these differ, and the sentences that refuse the others.

With `--without NAME`, or `all`, mends are taken out one at a time: each must be found by one of the seeds that meet its
rows. Exit code 1 if any is not.
"""

import argparse
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from tests.differential.asking import ROOT, Asked
from tests.differential.carrying_out import PYTHONS, ready
from tests.differential.constructions.axes import AXES
from tests.differential.constructions.drawing import all_of
from tests.differential.constructions.manners import MANNERS, Drawn
from tests.differential.constructions.mends import MENDS
from tests.differential.constructions.rows import ROWS, rows_of
from tests.differential.verdict import DIFFERENT, KINDS, REFUSED, Verdict

NO_ROW = "none"
_LIVES = 120  # seeds of a process, whose graphs and servers take memory
_PATIENCE_S = 60.0  # for a run; a process that does not answer by itself is ended some time later


class Result(NamedTuple):
    """What came of a seed, and the seconds of processor time that it took."""

    drawn: Drawn
    verdict: Verdict
    cpu_s: float


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 1 if any seed differs, else 0."""
    options = _options(argv)
    numbers = range(options.first, options.first + options.seeds) if options.seed is None else [options.seed]
    allowed = {axis: getattr(options, axis) for axis in (*AXES, *MANNERS) if getattr(options, axis)}
    allowed["runtime"] = ready(allowed.get("runtime", MANNERS["runtime"]))
    results, began, seeds = [], time.monotonic(), all_of(numbers, allowed)
    if options.without:
        names = list(MENDS) if options.without == "all" else [options.without]
        found = [_is_found(name, seeds, options) for name in names]
        return int(not all(found))
    chosen = [each for each in seeds if not options.rows or {*(rows_of(each) or [NO_ROW])} & {*options.rows}]
    for result in _carried_out(chosen, options):
        results.append(result)
        if options.verbose or result.verdict.kind == DIFFERENT:
            print(f"{result.verdict.kind}: {result.drawn}: {result.verdict.text}", flush=True)
    print("\n".join(_summary(results, time.monotonic() - began)), flush=True)
    return int(any(result.verdict.kind == DIFFERENT for result in results))


def _is_found(name: str, seeds: Sequence[Drawn], options: Any) -> bool:
    """Whether one of the seeds differs without that mend; prints a line about it."""
    chosen = [each for each in seeds if {*rows_of(each)} & {*(options.rows or MENDS[name].rows)}]
    for number, result in enumerate(_carried_out(chosen, options, name), 1):
        if result.verdict.kind == DIFFERENT:
            print(f"{name}: found by {result.drawn}: {result.verdict.text} ({number} of {len(chosen)})", flush=True)
            return True
    print(f"{name}: NOT FOUND by {len(chosen)} seeds", flush=True)
    return False


def _carried_out(drawn: Sequence[Drawn], options: Any, without: Optional[str] = None) -> Iterator[Result]:
    folder = Path(options.folder or ROOT / "build" / "differential")
    folder.mkdir(parents=True, exist_ok=True)
    benches: Queue[Dict[str, Asked]] = Queue()
    for index in range(options.jobs):
        log = folder / f"constructions.{index}.log"
        answers = "tests.differential.constructions.answers"
        benches.put({runtime: Asked(python, answers, log, _LIVES) for runtime, python in PYTHONS.items()})

    def one(each: Drawn) -> Result:
        bench = benches.get()
        try:
            return _asked(bench[each.way.runtime], each, options.patience, without)
        finally:
            benches.put(bench)

    pool = ThreadPoolExecutor(options.jobs)
    asked_for = [pool.submit(one, each) for each in sorted(drawn, key=lambda each: each.way.runtime)]
    try:
        for future in asked_for:
            yield future.result()
    finally:  # also where nobody wants the others
        for future in asked_for:
            future.cancel()
        pool.shutdown()
        while not benches.empty():
            for asked in benches.get().values():
                asked.end()


def _asked(process: Asked, drawn: Drawn, patience_s: float, without: Optional[str]) -> Result:
    request = {"drawn": drawn.request(), "patience_s": patience_s, "without": without}
    answer = process.ask(request, 4 * patience_s)
    if "kind" in answer:
        return Result(drawn, Verdict(answer["kind"], answer["text"]), answer["cpu_s"])
    ((what, value),) = answer.items()
    return Result(drawn, Verdict(DIFFERENT, f"{what}: {value}"), 0.0)


def _summary(results: Sequence[Result], wall_s: float) -> List[str]:
    kinds = Counter(result.verdict.kind for result in results)
    cpu_s = sum(result.cpu_s for result in results) / max(1, len(results))
    numbers = f"{len(results)} seeds: " + ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS)
    return ["", *_rows(results), "", *_refusals(results), "", f"{numbers}; {cpu_s:.2f} s each, {wall_s:.0f} s in all"]


def _rows(results: Sequence[Result]) -> List[str]:
    """A line for each row: seeds that meet it, those of them that differ, and those that meet no other row."""
    lines = [f"{'row':20} {'met':>5} {'refused':>8} {'differ':>7} {'differ, no other row':>21}"]
    met = {result.drawn.number: rows_of(result.drawn) or [NO_ROW] for result in results}
    for name in [*ROWS, NO_ROW]:
        mine = [each for each in results if name in met[each.drawn.number]]
        differ = [each for each in mine if each.verdict.kind == DIFFERENT]
        alone = [each for each in differ if met[each.drawn.number] == [name]]
        refused = sum(each.verdict.kind == REFUSED for each in mine)
        lines.append(f"{name:20} {len(mine):5} {refused:8} {len(differ):7} {len(alone):21}")
    return lines


def _refusals(results: Sequence[Result]) -> List[str]:
    found = Counter(_sentence(each.verdict.text) for each in results if each.verdict.kind == REFUSED)
    return [f"{number:5} refused: {text}" for text, number in found.most_common()]


def _sentence(text: str) -> str:
    return re.sub(r"\S*/(\w+\.py)", r"\1", re.sub(r"\d+", "N", text))[:200]


def _options(argv: Optional[List[str]]) -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--patience", type=float, default=_PATIENCE_S, help="seconds, after which a run hangs (60)")
    parser.add_argument("--folder", help="where logs are kept (build/differential)")
    parser.add_argument(
        "--without", choices=["all", *MENDS], metavar="MEND", help="take this mend out, or each in turn"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for those that do not differ, too")
    parser.add_argument("--rows", nargs="+", metavar="ROW", choices=[*ROWS, NO_ROW], help="only seeds that meet these")
    for axis, weights in {**AXES, **MANNERS}.items():
        kind: Any = type(next(iter(weights)))
        read: Any = (lambda text: text == "True") if kind is bool else kind
        parser.add_argument(f"--{axis}", nargs="+", type=read, choices=list(weights), help="only these")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
