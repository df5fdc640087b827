"""A curve in one line of text, and a bounded memory of its points."""

from typing import List, Sequence

BARS = "▁▂▃▄▅▆▇█"
MOST_POINTS = 256


class Curve:
    """The points of a quantity over the steps of a run, from the first point to the newest.

    The memory is bounded: where it is full, every second point goes, and from then on every second new one.
    """

    def __init__(self, most: int = MOST_POINTS):
        self.points: List[float] = []
        self._most = most
        self._stride, self._seen = 1, 0
        self._step = -1

    def add(self, step: int, value: float) -> None:
        """Record the value at a step; a step that is not newer than the last one changes nothing."""
        if step <= self._step:
            return
        self._step = step
        if self._seen % self._stride == 0:
            self.points.append(value)
        self._seen += 1
        if len(self.points) > self._most:
            self.points = self.points[::2]
            self._stride *= 2


def sparkline(points: Sequence[float], width: int) -> str:
    """Return points as bars, at most ``width`` of them: the smallest is ``▁``, the largest ``█``.

    Each bar is the mean of its part of the points. Points that are no finite number have no bar.
    """
    finite = [point for point in points if abs(point) < float("inf")]
    if len(finite) < 2 or width < 2:
        return ""
    count = min(width, len(finite))
    largest: float = max(abs(point) for point in finite) or 1.0
    scaled = [point / largest for point in finite]  # a sum of these is finite, even of a loss that has exploded
    parts = [scaled[len(finite) * bar // count : len(finite) * (bar + 1) // count] for bar in range(count)]
    means = [sum(part) / len(part) for part in parts]
    low, span = min(means), max(means) - min(means)
    return "".join(BARS[int((mean - low) / span * (len(BARS) - 1) + 0.5) if span else 0] for mean in means)
