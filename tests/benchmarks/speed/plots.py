"""Results as pictures: an SVG file each."""

import re
from pathlib import Path
from typing import Any, Callable, Sequence

from tests.benchmarks.speed import series
from tests.benchmarks.speed.cases import CASES, Case
from tests.benchmarks.speed.report import Result

BY_HOSTS = [CASES[name] for name in ("one", "two", "dedicated")]
BY_SIZE = [CASES[name] for name in ("small", "medium", "dedicated", "large")]
# Those by rate are in a table of their own, the quick one is for trying out, and layers are mostly arithmetic.
LEFT_OUT = re.compile(r".*-odd-|quick$|layers")
LIMITED = [case for case in CASES.values() if case.mbit and not LEFT_OUT.match(case.name)]


def draw(results: Sequence[Result], folder: Path) -> None:
    """Writes ``hosts.svg``, ``size.svg`` and ``bound.svg``; what was not measured is not in them."""
    from matplotlib import rc_context  # only here: measuring does without

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "speed", "svg.fonttype": "none"}):  # the same results give the same file
        _lines(results, BY_HOSTS, lambda case: case.workers, "workers, and as many ps", folder / "hosts.svg")
        _lines(results, BY_SIZE, lambda case: case.megabytes, "MB of variables", folder / "size.svg")
        _bars(results, folder / "bound.svg")


def _lines(
    results: Sequence[Result], cases: Sequence[Case], across: Callable[[Case], float], label: str, path: Path
) -> None:
    figure, axes = _axes()
    for name, points in series.step_times(results, cases, across).items():
        axes.plot(*zip(*points), marker="o", label=name)
    axes.plot(*zip(*series.bound(cases, across)), color="black", linestyle="--", label="bound of float32")
    axes.set(xlabel=label, ylabel="ms per step", ylim=(0, None), xticks=[across(case) for case in cases])
    _save(figure, axes, path)


def _bars(results: Sequence[Result], path: Path) -> None:
    figure, axes = _axes()
    ratios = series.over_bound(results, LIMITED)
    ways = list(dict.fromkeys(way for of_case in ratios.values() for way in of_case))
    width = 0.8 / max(1, len(ways))
    for number, way in enumerate(ways):
        found = [(place, of_case[way]) for place, of_case in enumerate(ratios.values()) if way in of_case]
        axes.bar([place + (number + 0.5) * width - 0.4 for place, _ in found], [y for _, y in found], width, label=way)
    axes.axhline(1, color="black", linestyle="--")
    axes.set(ylabel="step time over the bound of float32", xticks=range(len(ratios)))
    axes.set_xticklabels(list(ratios))
    _save(figure, axes, path)


def _axes() -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4))
    return figure, figure.subplots()


def _save(figure: Any, axes: Any, path: Path) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncol=4, frameon=False)
    figure.tight_layout()
    figure.savefig(str(path), metadata={"Date": None})
