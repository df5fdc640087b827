"""Many cases in one table, a row each: what the ways take by the size of the cluster and by the network's rate."""

import fnmatch
import re
from typing import Any, List, Optional, Sequence

from tests.benchmarks.speed.cases import CASES, WAYS, Case
from tests.benchmarks.speed.report import Found, Result

_MARK = re.compile(r"(<!-- overview: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def overview(results: Sequence[Result], pattern: str = "*") -> str:
    """Return the table of the cases whose names match and that were measured; columns are the ways that were.

    A cell has the median in ms, what that is of the way's own bound, and how busy the processors were.
    """
    names = {each["case"] for each in results}
    cases = [case for name, case in CASES.items() if name in names and fnmatch.fnmatch(name, pattern)]
    measured = {each["way"] for each in results if each["case"] in {case.name for case in cases}}
    ways = [way for way in WAYS if way in measured]
    head = ["case", "workers + ps", "Mbit/s", "bound ms", *(f"`{way}`" for way in ways)]
    rows = [[*_described(case), *(_cell(results, case, way) for way in ways)] for case in cases]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---", *["---:"] * (len(head) - 1)], *rows])


def page(text: str, results: Sequence[Result]) -> str:
    """Return the page with such a table between each ``<!-- overview: PATTERN -->`` and ``<!-- end -->``."""

    def written(found: Any) -> str:
        return f"{found[1]}{overview(results, found[2])}\n{found[3]}"

    return _MARK.sub(written, text)


def _described(case: Case) -> List[str]:
    bound_ms = case.bound_ms()
    rate = "no limit" if case.mbit is None else f"{case.mbit:g}"
    return [f"`{case.name}`", f"{case.workers} + {case.ps}", rate, "" if bound_ms is None else f"{bound_ms:.0f}"]


def _cell(results: Sequence[Result], case: Case, name: str) -> str:
    found: Optional[Found] = Found.of(results, case, WAYS[name])
    if found is None:
        return ""
    bound_ms = case.bound_ms(WAYS[name].wire)
    over = "" if bound_ms is None else f", {found.median_ms / bound_ms:.2f}"
    return f"{found.median_ms:.0f}{over}, {100 * found.busy:.0f} %"
