"""The learning curve of a run, in a bounded size: the field ``history`` of ``status --json``."""

import math
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, NamedTuple, Optional, TypeVar

from cluster.protocol.loss_points import LossPoint

MOST = 512  # points
MOST_EVENTS = 64  # evaluations, and events of one kind
MOST_METRICS = 8  # of one evaluation
Item = TypeVar("Item")


class CurvePoint(NamedTuple):
    """A point of the curve that can be drawn."""

    step: int
    loss: float


@dataclass(frozen=True)
class RunHistory:
    """The learning curve of a run, from its first step. A run that resumes continues the curve of the earlier run.

    The first three lists are columns of one table, with a row for each point of the curve. A point covers a range of
    steps. Where the points are too many, the ranges double, so that the table has at most 512 rows.

    Attributes:
      step: Last global step of each point's range.
      loss: Mean loss of the chief's batches in each range; null where no loss was a finite number.
      steps_per_second: Recent global steps per second at the end of each range.
      evaluations: Metrics on held-out data: the step and each metric, null for an undefined metric. A list that is too
        long drops every second item.
      marks: Global steps of the events of a kind: checkpoint and formation. A list that is too long drops every second
        item.
    """

    step: List[int] = field(default_factory=list)
    loss: List[Optional[float]] = field(default_factory=list)
    steps_per_second: List[float] = field(default_factory=list)
    evaluations: List[Dict[str, Optional[float]]] = field(default_factory=list)
    marks: Dict[str, List[int]] = field(default_factory=dict)

    @property
    def points(self) -> List[CurvePoint]:
        """Return the points of the curve that have a loss."""
        return [CurvePoint(step, loss) for step, loss in zip(self.step, self.loss) if loss is not None]


class Range(NamedTuple):
    """A range of steps: its last step, the sum and the number of its finite losses, and the rate at its end.

    ``rate`` is in steps per second.
    """

    step: int
    total: float
    losses: int
    rate: float

    def joined(self, other: "Range") -> "Range":
        """Return the range that covers this range and ``other``, the later one."""
        return Range(other.step, self.total + other.total, self.losses + other.losses, other.rate)


class Curve:
    """The recorder of the learning curve of one run.

    A point covers the steps of one range: range number n begins at step n times ``_stride``. Where the points are too
    many, the stride doubles. So the points have the same distance from the first step to the newest, however long the
    run lasts. Training that returns to a checkpoint continues the curve from the checkpoint's step.
    """

    def __init__(self, most: int = MOST):
        self._most = most
        self._stride = 1
        self._points: List[Range] = []
        self._evaluations: List[Dict[str, Optional[float]]] = []
        self._marks: Dict[str, List[int]] = {}
        self._shown: Optional[RunHistory] = None

    def restore(self, earlier: RunHistory) -> None:
        """Begin with ``earlier``: the curve of an earlier lead agent, or of the run that this run continues."""
        rows = list(zip(earlier.step, earlier.loss, earlier.steps_per_second))
        gaps = sorted(row[0] - before[0] for before, row in zip(rows, rows[1:]))
        self._stride = 2 ** int(math.log2(max(1, gaps[(len(gaps) - 1) // 2]))) if gaps else 1  # the lower median
        weight = self._stride  # of each point, as far as it is known
        self._points = [Range(step, weight * (loss or 0.0), weight * (loss is not None), r) for step, loss, r in rows]
        self._evaluations = [dict(each) for each in earlier.evaluations]
        self._marks = {kind: [*steps] for kind, steps in earlier.marks.items()}
        self._shown = None

    def add(self, point: LossPoint, rate: float) -> None:
        """Add ``point``, and drop the points of the same and later steps: training went back, and lost these steps."""
        if self._points and self._points[-1].step >= point.step:
            self._evaluations = [each for each in self._evaluations if (each.get("step") or 0) < point.step]
            self._points = [each for each in self._points if each.step < point.step]
        is_finite = math.isfinite(point.loss)
        total = point.loss * point.steps if is_finite else 0.0
        self._append(Range(point.step, total, point.steps if is_finite else 0, round(rate, 3)))
        while len(self._points) > self._most:
            self._stride *= 2
            points, self._points = self._points, []
            for each in points:
                self._append(each)

    def _append(self, point: Range) -> None:
        if self._points and self._points[-1].step // self._stride == point.step // self._stride:
            self._points[-1] = self._points[-1].joined(point)
        else:
            self._points.append(point)
            self._shown = None

    def evaluate(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add metrics on held-out data, unless the newest metrics are of the same step."""
        if not self._evaluations or self._evaluations[-1].get("step") != step:
            known = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
            first = dict([*known.items()][:MOST_METRICS])
            self._evaluations = _thinned([*self._evaluations, {**first, "step": step}])
            self._shown = None

    def mark(self, kind: str, step: int) -> None:
        """Add ``step`` to the steps of the events of ``kind``, unless it is already the newest of them."""
        known = self._marks.get(kind, [])
        if known[-1:] != [step]:
            self._marks[kind] = _thinned([*known, step])
            self._shown = None

    def complete(self) -> None:
        """Let ``shown`` include the newest range as far as it is known."""
        self._shown = None

    @property
    def shown(self) -> RunHistory:
        """Return the curve; the same object until the next range begins, or an event is added."""
        if self._shown is None:
            losses = [float(f"{each.total / each.losses:.6g}") if each.losses else None for each in self._points]
            self._shown = RunHistory(
                [each.step for each in self._points],
                losses,
                [each.rate for each in self._points],
                self._evaluations,
                dict(self._marks),
            )
        return self._shown


def _thinned(items: List[Item]) -> List[Item]:
    """Return the items, or every second one with the newest where they are too many."""
    return items if len(items) <= MOST_EVENTS else items[::-2][::-1]
