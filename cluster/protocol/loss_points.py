"""The loss curve of a run, as its chief reports it: the mean loss of every few steps.

A report replaces the previous report, which the agent may not have read yet. So a report has the points of the two
newest intervals, and the number of this process's earlier points. So a reader can take each point once.
"""

import math
from typing import Any, Dict, List, Mapping, NamedTuple

MOST = 32  # points of one interval: twice as many steps have points of twice as many steps


class LossPoint(NamedTuple):
    """The mean ``loss`` of the ``steps`` steps up to ``step``; NaN if the loss of one of them was not finite."""

    step: int
    loss: float
    steps: int


class LossPoints:
    """The points of the curve since the last report; each step costs a few additions."""

    def __init__(self) -> None:
        self._points: List[List[float]] = []  # since the newest report
        self._reported: List[List[float]] = []  # in the newest report, for the first time
        self._before = 0  # points before those
        self._stride = 1  # steps of a point
        self._step, self._sum, self._steps = 0, 0.0, 0  # of the point that is not complete

    def add(self, step: int, loss: float) -> None:
        """Add the loss of one step."""
        self._step = step
        self._sum += loss
        self._steps += 1
        if self._steps >= self._stride:
            self._complete()

    def _complete(self) -> None:
        self._points.append([self._step, self._sum / self._steps, self._steps])
        self.interrupt()
        if len(self._points) >= MOST:
            self._points = [_joined(*pair) for pair in zip(self._points[::2], self._points[1::2])]
            self._stride *= 2

    def interrupt(self) -> None:
        """Drop the steps that do not yet make a point, because training continues from another step."""
        self._sum, self._steps = 0.0, 0

    def fields(self) -> Dict[str, Any]:
        """Return the fields ``curve`` and ``curve_from`` of a ``Progress`` report, and begin the next interval."""
        if self._steps:
            self._complete()
        reported = {"curve": [*self._reported, *self._points], "curve_from": self._before}
        self._before += len(self._reported)
        self._reported, self._points = self._points, []
        self._stride = max(1, self._stride // 2)  # in case that the steps take longer now
        return reported


def _joined(one: List[float], other: List[float]) -> List[float]:
    steps = one[2] + other[2]
    return [other[0], (one[1] * one[2] + other[1] * other[2]) / steps, steps]


def new_points(progress: Mapping[str, Any], taken: int) -> List[LossPoint]:
    """Return the points in ``progress`` that follow the first ``taken`` ones of its process; omit malformed points."""
    reported = progress.get("curve") or []
    new = reported[max(0, taken - (progress.get("curve_from") or 0)) :][-2 * MOST :]
    return [LossPoint(int(point[0]), point[1], int(point[2])) for point in new if _is_whole(point)]


def _is_whole(point: List[float]) -> bool:
    return len(point) == 3 and all(map(math.isfinite, (point[0], point[2]))) and point[0] >= 0 and point[2] >= 1


def count(progress: Mapping[str, Any]) -> int:
    """Return the number of points that a process has reported up to and with its report ``progress``."""
    return (progress.get("curve_from") or 0) + len(progress.get("curve") or [])
