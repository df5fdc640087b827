"""Compare runs: the arguments that differ, the results, and the curves of two runs in one drawing."""

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from launch.curve.overlay import MARKS, overlay
from launch.status.run import RunRecord
from launch.status.run_history import RunHistory
from launch.view.console import of_duration
from launch.view.differences import differing, in_words
from launch.view.run_text import ABSENT, amount, elapsed, metric, step_of


@dataclass(frozen=True)
class ComparedRun(RunRecord):
    """An item of ``runs`` in ``runs --compare --json``.

    Attributes:
      history: With --compare: learning curve of the run, and of the runs that it continues.
    """

    history: RunHistory = field(default_factory=RunHistory)


@dataclass(frozen=True)
class RunsComparison:
    """The object of ``runs --compare --json``.

    Attributes:
      runs[]: Compared run, with the fields of ``runs --json`` and ``history``.
      differs: With --compare: each argument that differs, with one value for each item of runs; null for a run without
        the argument. The keys of ``train`` begin with ``train.``.
    """

    runs: List[ComparedRun]
    differs: Dict[str, List[Any]]


def result(run: RunRecord) -> Optional[Tuple[str, Optional[float]]]:
    """Return the metric that ``train.best`` names, or else the first held-out metric other than the loss."""
    best = {name: value for name, value in (run.best or {}).items() if name != "step"}
    found: List[Tuple[str, Optional[float]]] = [*best.items(), *run.metrics.items()]
    return next((each for each in found if each[0] != "loss" or best), None)


def facts(run: RunRecord) -> Iterator[Tuple[str, str]]:
    """Yield the results of a run, each as its name and its value in words."""
    seconds, found = elapsed(run), result(run)
    yield "state", run.state or "unknown"
    if seconds is not None:
        yield "took", of_duration(seconds)
    if run.global_step is not None:
        yield "step", step_of(run.global_step, run.steps)
    if run.loss is not None:
        yield "loss", amount(run.loss)
    if found is not None:
        name, value = found
        yield name, metric(name, value)[len(name) + 1 :]


def table(runs: Sequence[ComparedRun]) -> List[List[str]]:
    """Return the rows of a table: the names of the runs, their results, and the arguments that differ."""
    known: List[Mapping[str, str]] = [dict(facts(run)) for run in runs]
    rows = [[name, *(each.get(name, ABSENT) for each in known)] for name in dict.fromkeys(n for k in known for n in k)]
    rows += [[name, *map(in_words, values)] for name, values in differing(runs).items()]
    return [["", *(run.run for run in runs)], *rows]


def lines(runs: Sequence[ComparedRun], width: int) -> List[str]:
    """Return the comparison as lines of text: the curves, and the table below them."""
    drawn = overlay([run.history.points for run in runs], width)
    rows = table(runs)
    rows[0] = ["", *(f"{mark} {name}" for mark, name in zip(MARKS, rows[0][1:]))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    found = ["  ".join(cell.ljust(wide) for cell, wide in zip(row, widths)).rstrip() for row in rows]
    return [*(drawn or ["no curve: neither run has recorded a loss"]), "", *found]
