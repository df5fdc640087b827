"""Results as tables of ratios, and a page with these tables in it."""

import re
import statistics
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from tests.benchmarks.speed.cases import CASES, WAYS, Case, Way

Result = Dict[str, Any]  # one measurement: case, way and what ``running.measure`` returns

_HEAD = (
    "| way | times | least ms | median ms | over the bound | over stock | MB received | MB sent | processors | start s"
    " | chief MB | worker MB | ps MB |"
)
_OF_A_START = ("joined_s", "chief_peak_mb", "worker_peak_mb", "ps_peak_mb")  # older results have none
_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Found(NamedTuple):
    """What the measurements of one case in one way say together; bytes are those of one worker and step.

    ``start``: medians of the seconds until every worker had taken a step, and of the peak memory of a chief, another
    worker and a ps in megabytes; None where that was not measured.
    """

    times: int
    least_ms: float
    median_ms: float
    received_mb: float
    sent_mb: float
    busy: float
    start: Sequence[Optional[float]]

    @classmethod
    def of(cls, results: Sequence[Result], case: Case, way: Way) -> Optional["Found"]:
        """None where there is no such measurement."""
        chosen = [each for each in results if (each["case"], each["way"]) == (case.name, way.name)]
        if not chosen:
            return None
        times_ms = [each["step_ms"] for each in chosen]
        received, sent, busy = (
            float(statistics.mean(each[key] for each in chosen)) for key in ("received_mb", "sent_mb", "busy")
        )
        start = [_median([each[key] for each in chosen if key in each]) for key in _OF_A_START]
        return cls(len(chosen), min(times_ms), statistics.median(times_ms), received, sent, busy, start)


def _median(values: Sequence[float]) -> Optional[float]:
    return statistics.median(values) if values else None


def tables(results: Sequence[Result]) -> str:
    """Every case that has results, in the order of the cases, under a line that says what it is."""
    measured = {each["case"] for each in results}
    return "\n\n".join(_titled(CASES[name], results) for name in CASES if name in measured)


def page(text: str, results: Sequence[Result]) -> str:
    """The same page with the tables of these results between ``<!-- table: CASE -->`` and ``<!-- end -->``."""

    def written(found: Any) -> str:
        return f"{found[1]}{_titled(CASES[found[2]], results)}\n{found[3]}"

    return _TABLE.sub(written, text)


def _titled(case: Case, results: Sequence[Result]) -> str:
    """The table of a case under a line that says what it is, and of which commits the results are."""
    named = dict.fromkeys(each.get("commit") for each in results if each["case"] == case.name)
    commits = ", ".join(f"`{each}`" if each else "a commit that was not recorded" for each in named)
    measured = f"; measured at {commits}" if any(named) else ""
    return f"{title(case)}{measured}\n\n{table(case, results)}"


def title(case: Case) -> str:
    """What a case is, in a sentence."""
    net = "a network without limit" if case.mbit is None else f"{case.mbit:g} Mbit/s"
    bound = case.bound_ms()
    what = f"the job `{case.job}`, " if case.job else ""
    kind = f"{case.number} {case.kind} variables" if not case.job else "its variables"
    return (
        f"`{case.name}`: {case.workers} worker{'s' * (case.workers > 1)} and {case.ps} ps"
        f"{' on the same hosts' if case.colocated else ', a host each'}, {net}; {what}{case.megabytes:.3g} MB in"
        f" {kind}; {case.towers} tower{'s' * (case.towers > 1)} a worker"
        f"{'' if bound is None else f'; bound {bound:.0f} ms'}"
    )


def table(case: Case, results: Sequence[Result]) -> str:
    """The table of one case."""
    found = {way.name: Found.of(results, case, way) for way in WAYS.values()}
    rows = [_row(case, WAYS[name], each, _stock_ms(found, WAYS[name])) for name, each in found.items() if each]
    return "\n".join([_HEAD, "|---|" + 12 * "---:|", *rows])


def _stock_ms(found: Mapping[str, Optional[Found]], way: Way) -> Optional[float]:
    stock = found["stock" if way.waits else "stock-async"]
    return stock.median_ms if stock else None


def _row(case: Case, way: Way, found: Found, stock_ms: Optional[float]) -> str:
    cells: List[str] = [
        way.told or way.name,
        str(found.times),
        f"{found.least_ms:.0f}",
        f"{found.median_ms:.0f}",
        _ratio(found.median_ms, case.bound_ms(way.wire)),
        _ratio(found.median_ms, stock_ms),
        f"{found.received_mb:.2f}",
        f"{found.sent_mb:.2f}",
        f"{100 * found.busy:.0f} %",
        *("" if each is None else f"{each:.0f}" for each in found.start),
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(value: float, of: Optional[float]) -> str:
    return f"{value / of:.2f}" if of else ""
