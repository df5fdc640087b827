"""Tables of the results, a row for each system, with ratios to the best of TensorFlow's own ways in the same case."""

import re
import statistics
from typing import Any, Dict, List, Mapping, Optional, Sequence

from cluster.protocol.quantity import quantity
from tests.benchmarks.recommend.cases import STOCK, SYSTEMS, Case, System, case_of

Result = Dict[str, Any]
_HEAD = (
    "| | runs | examples/s | over the best `stock` | examples per processor second | over the best `stock` | cores"
    " | AUC | kB received | kB sent | ps MB | worker MB | first step, s |"
)
_SIZES_HEAD = (
    "| | examples/s | `stock` | ratio | the same a processor second | kB sent | `stock` | AUC | `stock`"
    " | first step, s | `stock` | ps MB | `stock` |"
)
_COMPARED = {"ours", "stock"}
_TABLES = re.compile(r"(<!-- tables -->\n).*?(<!-- end -->)", re.DOTALL)
_RATES = ("examples_per_s", "examples_per_cpu_s")


def page(text: str, results: Sequence[Result]) -> str:
    """Return the page with new tables between ``<!-- tables -->`` and ``<!-- end -->``."""
    return _TABLES.sub(lambda found: f"{found[1]}{tables(results)}\n{found[2]}", text)


def tables(results: Sequence[Result]) -> str:
    """Return the tables of all cases, in the order of their first results; those of two systems in one table."""
    cases: Dict[str, List[Result]] = {}
    for each in results:
        cases.setdefault(each["case"], []).append(each)
    large = {name: of_case for name, of_case in cases.items() if {each["system"] for each in of_case} != _COMPARED}
    small = {name: of_case for name, of_case in cases.items() if name not in large}
    return "\n\n".join([*(table(*each) for each in large.items()), *([sizes(small)] if small else [])])


def sizes(cases: Mapping[str, Sequence[Result]]) -> str:
    """Return one table of cases in which this project and ``stock`` were measured, a row for each cluster."""
    rows = [_size(case_of(name.replace("-", ":")), of_case) for name, of_case in sorted(cases.items())]
    return "\n".join(
        ["**Other clusters, one run each, networks without a limit.**", "", _SIZES_HEAD, "|---|" + 12 * "---:|", *rows]
    )


def _size(case: Case, results: Sequence[Result]) -> str:
    ours, stock = ([each for each in results if each["system"] == name] for name in ("ours", "stock"))
    speed, other = _median(ours, "examples_per_s"), _median(stock, "examples_per_s")
    ratio = _median(ours, "examples_per_cpu_s") / _median(stock, "examples_per_cpu_s")
    both = [
        f"{_median(some, name):{form}}"
        for name, form in (("sent_kb", ".0f"), ("auc", ".4f"), ("first_step_s", ".0f"))
        for some in (ours, stock)
    ]
    cells = [
        f"{case.ps} ps, {quantity(case.workers, 'worker')}", f"{speed:,.0f}", f"{other:,.0f}",
        f"{speed / other:.2f}", f"{ratio:.2f}", *both, _peak(ours, "ps"), _peak(stock, "ps"),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def table(name: str, results: Sequence[Result]) -> str:
    """Return the table of one case."""
    case = case_of(name.replace("-", ":"))
    measured = [system for system in SYSTEMS.values() if any(each["system"] == system.name for each in results)]
    loads = [each["load_before"] for each in results]
    rows = [_row(system, results) for system in measured]
    load = f"Load of the machine before a run: {min(loads):.0f} to {max(loads):.0f}."
    return "\n".join([f"**{case.title}.** {load}", "", _HEAD, "|---|" + 12 * "---:|", *rows])


def _row(system: System, results: Sequence[Result]) -> str:
    mine = [each for each in results if each["system"] == system.name]
    speeds = []
    for rate in _RATES:
        best = best_stock(results, rate)
        speeds += [f"{_median(mine, rate):,.0f}", "" if best is None else f"{_median(mine, rate) / best:.2f}"]
    peaks = [_peak(mine, role) for role in ("ps", "worker")]
    sizes = [f"{_median(mine, name):.0f}" for name in ("received_kb", "sent_kb")]
    cells = [
        f"{system.words} (`{system.name}`)", str(len(mine)), *speeds, f"{_median(mine, 'cores'):.2f}",
        f"{_median(mine, 'auc'):.4f}", *sizes, *peaks, f"{_median(mine, 'first_step_s'):.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def best_stock(results: Sequence[Result], rate: str) -> Optional[float]:
    """Return the best median of TensorFlow 1.15's partitioned variables; None where none was measured."""
    names = [each.name for each in SYSTEMS.values() if each.module == STOCK and each.clustered]
    found = [[each for each in results if each["system"] == name] for name in names]
    return max((_median(each, rate) for each in found if each), default=None)


def _median(results: Sequence[Result], name: str) -> float:
    return float(statistics.median(each[name] for each in results))


def _peak(results: Sequence[Result], role: str) -> str:
    peaks: List[float] = [each["peaks_mb"][role] for each in results if role in each["peaks_mb"]]
    return f"{max(peaks):,.0f}" if peaks else ""
