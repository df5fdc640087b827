"""Results as tables of ratios."""

import statistics
from typing import Any, Dict, List, Optional, Sequence

from tests.benchmarks.speed.cases import CASES, WAYS, Case

_HEAD = "| way | ms per step: least | median | times the bound | of stock's | MB received | MB sent | processors busy |"


def tables(results: Sequence[Dict[str, Any]]) -> str:
    """A table for each case that has results, in the order of the cases."""
    measured = {each["case"] for each in results}
    return "\n\n".join(table(case, results) for name, case in CASES.items() if name in measured)


def table(case: Case, results: Sequence[Dict[str, Any]]) -> str:
    """The table of one case; bytes are those of one worker and step."""
    by_way = {name: [each for each in results if (each["case"], each["way"]) == (case.name, name)] for name in WAYS}
    stock = median(by_way.get("stock", []))
    rows = [_row(case, name, found, stock) for name, found in by_way.items() if found]
    return "\n".join([title(case), "", _HEAD, "|---|" + 7 * "---:|", *rows])


def title(case: Case) -> str:
    """What the case is, in a sentence."""
    net = "no limit" if case.mbit is None else f"{case.mbit:g} Mbit/s"
    bound = case.bound_ms()
    told = "" if bound is None else f", bound {bound:.0f} ms"
    return (
        f"**{case.name}**: {case.workers} workers and {case.ps} ps{' on the same hosts' if case.colocated else ''},"
        f" {net}, {case.megabytes:g} MB in {case.number} {'even' if case.even else 'uneven'} variables,"
        f" towers {case.towers}{told}"
    )


def median(found: Sequence[Dict[str, Any]]) -> Optional[float]:
    """The median step time of some measurements, None of none."""
    return statistics.median(each["step_ms"] for each in found) if found else None


def _row(case: Case, name: str, found: List[Dict[str, Any]], stock: Optional[float]) -> str:
    middle, bound = median(found), case.bound_ms(WAYS[name].wire)
    least = min(each["step_ms"] for each in found)

    def mean(key: str) -> float:
        return float(statistics.mean(each[key] for each in found))

    cells = [
        f"{WAYS[name].told or name} ({len(found)})",
        f"{least:.0f}",
        f"{middle:.0f}",
        _ratio(middle, bound),
        _ratio(middle, stock),
        f"{mean('received_mb'):.2f}",
        f"{mean('sent_mb'):.2f}",
        f"{100 * mean('busy'):.0f} %",
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(value: Optional[float], of: Optional[float]) -> str:
    return "" if value is None or not of else f"{value / of:.2f}"
