"""The points of a grid, which are the combinations of its values: their results, the best point, the table.

The runs of a point have their own name, such as ``digits.3``. So each point also has its own checkpoints.
"""

import itertools
import json
import math
import operator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from yaml.nodes import SequenceNode

from cluster.spec.yaml_text import parse, value_of
from cluster.task import Best
from launch.errors import UsageError
from launch.status.run import RunStatus
from launch.view import differences
from launch.view.console import Column, table
from launch.view.run_text import amount, step_of

MOST = 1000  # points of a grid
WAITING, FINISHED = "waiting", ("succeeded", "failed")
EXPECTED = "KEY=VALUE,VALUE such as args.hidden=64,128"


class Axis(NamedTuple):
    """A key of a grid and its values: ``written`` as the user wrote them, and ``values`` as YAML reads them."""

    key: str
    written: Tuple[str, ...]
    values: Tuple[Any, ...]


@dataclass(frozen=True)
class GridPoint:
    """An item of ``points`` in ``grid --json``.

    Attributes:
      name: Name of the point's runs, without the start time: digits.3.
      set: Value of each key of the grid.
      run: Full name of the point's newest run; null before the first.
      state: State of the point: waiting, or the state of its run. The same command continues a stopped or failed
        point.
      global_step: Newest global step of the run; null before the first.
      steps: Global step at which the run stops; null for a command.
      loss: Loss of the chief's newest step; null before the first.
      value: Value by which points are compared; null before the end, and for an undefined value.
      cause: Cause of the failure or stop, or the reason why the point waits, in one line; else null.
    """

    name: str
    set: Dict[str, Any]
    run: Optional[str] = None
    state: str = WAITING
    global_step: Optional[int] = None
    steps: Optional[int] = None
    loss: Optional[float] = None
    value: Optional[float] = None
    cause: Optional[str] = None

    @property
    def is_finished(self) -> bool:
        """Return whether the point has its result; a failed point has none, and is tried again."""
        return self.state == "succeeded"

    @property
    def failed_early(self) -> bool:
        """Return whether the point failed before its first step."""
        return self.state == "failed" and not self.global_step


@dataclass(frozen=True)
class GridReport:
    """The object of ``grid --json``.

    Attributes:
      metric: Metric by which points are compared: the metric of train.best, else the loss (on held-out data, if the job
        has any).
      goal: Better values of the metric: max for larger, min for smaller values.
      best: Name of the best point; null where no point has succeeded with a value.
      points[]: Every point, in the order of the start.
    """

    metric: str
    goal: str
    best: Optional[str]
    points: List[GridPoint] = field(default_factory=list)


def axes(options: Sequence[str]) -> List[Axis]:
    """Return the keys of a grid with their values, which have the types that ``--set`` gives them.

    Raises:
      UsageError: an option is not of the form KEY=VALUE,…, a key or value occurs twice, or the points are too many.
    """
    found = [_axis(option) for option in options]
    keys = [axis.key for axis in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise UsageError(f"--grid {twice}: expected each key once, found it twice; put its values into one option")
    number = reduce(operator.mul, (len(axis.values) for axis in found), 1)
    if number > MOST:
        raise UsageError(f"--grid: expected at most {MOST} points, found {number}; leave some values out")
    return found


def _axis(option: str) -> Axis:
    key, equals, text = option.partition("=")
    where = f"--grid {key}"
    if not key or not equals or not text.strip():
        raise UsageError(f"--grid: expected {EXPECTED}, found {option!r}")
    if key == "name":
        raise UsageError(f"{where}: expected another key, because the grid sets this key for each point")
    root, problems = parse(f"[{text}]", where)
    if problems or not isinstance(root, SequenceNode):
        raise UsageError(f"{where}: expected {EXPECTED}, found {text!r}")
    written = tuple(f"[{text}]"[each.start_mark.index : each.end_mark.index] for each in root.value)
    values = tuple(map(value_of, root.value))
    known = [json.dumps(value) for value in values]
    if len(set(known)) < len(known):
        again = next(text for text, value in zip(written, known) if known.count(value) > 1)
        raise UsageError(f"{where}: expected each value once, found {again} twice")
    return Axis(key, written, values)


def points(name: str, of: Sequence[Axis]) -> List[GridPoint]:
    """Return a new point for each combination of the values of ``of``; the last key changes first.

    The names of the points are ``name`` with a number from 1.
    """
    keys = [axis.key for axis in of]
    combined = itertools.product(*(axis.values for axis in of))
    return [GridPoint(f"{name}.{number}", dict(zip(keys, values))) for number, values in enumerate(combined, 1)]


def overrides(of: Sequence[Axis]) -> List[Tuple[str, ...]]:
    """Return the overrides of each point as ``--set`` takes them: KEY=VALUE, with the values as the user wrote them."""
    pairs = [[f"{axis.key}={text}" for text in axis.written] for axis in of]
    return list(itertools.product(*pairs))


def noted(point: GridPoint, status: RunStatus, best: Best) -> GridPoint:
    """Return ``point`` with the state and the results of its run, whose status is ``status``."""
    over = status.state in FINISHED
    return replace(
        point, run=status.run, state=status.state, global_step=status.global_step, steps=status.steps,
        loss=status.loss, cause=status.cause, value=value_of_run(status, best) if over else None,
    )  # fmt: skip


def value_of_run(status: RunStatus, best: Best) -> Optional[float]:
    """Return the value by which a run is compared; None for an undefined value."""
    if best.metric:
        value: Optional[float] = (status.best or {}).get(best.metric, status.metrics.get(best.metric))
    else:
        value = status.metrics.get("loss", status.loss)
    return value if value is not None and math.isfinite(value) else None


def following(found: Sequence[GridPoint], busy: Iterable[int]) -> Optional[int]:
    """Return the index in ``found`` of the next point to start: it has no result, and is not in ``busy``.

    A point that failed before comes last, so that a failure that repeats keeps no other point from its start.
    """
    out = set(busy)
    left = [(point.state == "failed", place) for place, point in enumerate(found) if not point.is_finished]
    return next((place for _, place in sorted(left) if place not in out), None)


def best_of(found: Sequence[GridPoint], goal: str) -> Optional[GridPoint]:
    """Return the best point that has succeeded, of equal points the first; None if no such point has a value."""
    sign = -1 if goal == "max" else 1
    valued = [(sign * point.value, point) for point in found if point.state == "succeeded" and point.value is not None]
    return min(valued, key=lambda pair: pair[0])[1] if valued else None


def report(found: Sequence[GridPoint], best: Best) -> GridReport:
    """Return the outcome of a grid."""
    goal = best.goal if best.metric else "min"
    first = best_of(found, goal)
    return GridReport(best.metric or "loss", goal, None if first is None else first.name, list(found))


def lines(of: GridReport, width: Optional[int] = None) -> List[str]:
    """Return the table of a grid, then its best point."""
    keys = list(of.points[0].set)
    columns: List[Column[GridPoint, str]] = [
        Column("point", 0, lambda point: point.name),
        *(Column(key, 1, lambda point, key=key: _shown(point.set[key]), is_number=True) for key in keys),  # type: ignore[misc]
        Column("state", 2, lambda point: point.state),
        Column("step", 4, lambda point: step_of(point.global_step, point.steps), is_number=True),
        Column("loss", 3, lambda point: amount(point.loss), is_number=True),
        Column(f"final {of.metric}", 2, lambda point: amount(point.value), is_number=True),
        Column("cause", 5, lambda point: point.cause or "", least=20, shown_for=lambda point: bool(point.cause)),
    ]
    best = next((point for point in of.points if point.name == of.best), None)
    return [*table(columns, of.points, width), *([] if best is None else [in_words(best, of.metric)])]


def in_words(best: GridPoint, metric: str) -> str:
    """Return a line about the best point.

    Example: ``best: digits.3 (args.hidden=64), loss 0.21; its run is digits.3-20261120-155902``.
    """
    values = ", ".join(f"{key}={_shown(value)}" for key, value in best.set.items())
    return f"best: {best.name} ({values}), {metric} {amount(best.value)}; its run is {best.run}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> List[str]:
    """Return a line for each key that differs between two hosts files."""
    return [
        f"{each.key}: expected {json.dumps(each.before)} as before, found {json.dumps(each.now)}"
        for each in differences.between(before, now)
    ]
