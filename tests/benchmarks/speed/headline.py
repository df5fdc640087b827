"""The chart of the README: the time of a step with this project and with TensorFlow's own optimizer, and two bounds.

A ring is there as its bound, which is computed: no step of a ring can be faster.
"""

from statistics import median
from typing import List, NamedTuple, Sequence
from xml.sax.saxutils import escape

from tests.benchmarks.speed import bounds
from tests.benchmarks.speed.cases import CASES
from tests.benchmarks.speed.report import Result

CASE = CASES["four-odd"]
WIDTH, LEFT, BAR, ROW, TOP = 860, 330, 22, 38, 62  # pixels


class Bar(NamedTuple):
    """One row of the chart; a bar that was computed and not measured is drawn hollow."""

    label: str
    step_ms: float
    colour: str
    computed: bool = False


def bars(results: Sequence[Result]) -> List[Bar]:
    """Return the rows, the slowest way first."""
    rate, model = bounds.bytes_per_s(float(CASE.mbit or 0)), CASE.megabytes * 1e6
    ring_ms = 1000 * bounds.colocated_s(model, CASE.workers, rate)
    least_ms = 1000 * bounds.overlapped_s(model, CASE.workers, CASE.ps, rate)
    return [
        Bar("TensorFlow's SyncReplicasOptimizer", measured_ms(results, "stock"), "#8b949e"),
        Bar("this project", measured_ms(results, "ours"), "#1f6feb"),
        Bar(f"bound of a ring of {CASE.workers} hosts", ring_ms, "#8b949e", computed=True),
        Bar(f"bound with {CASE.ps} parameter servers", least_ms, "#1f6feb", computed=True),
    ]


def measured_ms(results: Sequence[Result], way: str) -> float:
    """Return the median of a way's measurements."""
    return float(median(each["step_ms"] for each in results if (each["case"], each["way"]) == (CASE.name, way)))


def chart(results: Sequence[Result]) -> str:
    """Return the chart as an SVG file."""
    rows = bars(results)
    scale = (WIDTH - LEFT - 90) / max(bar.step_ms for bar in rows)
    height = TOP + ROW * len(rows) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<text x="16" y="24" font-weight="bold">Milliseconds of a synchronous step</text>',
        f'<text x="16" y="44" font-size="12" fill="#57606a">{CASE.workers} workers and {CASE.ps} ps, a fake host each,'
        f" {CASE.mbit:g} Mbit/s; {CASE.number} variables of {CASE.megabytes:g} MB; all on one machine with two cores."
        " Hollow: computed</text>",
    ]
    for index, bar in enumerate(rows):
        lines += _row(bar, TOP + ROW * index, bar.step_ms * scale)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _row(bar: Bar, top: float, width: float) -> List[str]:
    look = f'fill="white" stroke="{bar.colour}" stroke-dasharray="4 3"' if bar.computed else f'fill="{bar.colour}"'
    middle = top + BAR - 6
    return [
        f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" {look}/>',
        f'<text x="{LEFT + width + 8:.1f}" y="{middle}">{bar.step_ms:.0f}</text>',
    ]
