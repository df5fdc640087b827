"""The loss of a run over its steps, recorded by a process that follows the run, and drawn as one line of text."""

from typing import List, Optional, Sequence, Tuple

from launch.status.run import RunStatus

BARS = "▁▂▃▄▅▆▇█"


def sparkline(points: Sequence[float], width: int) -> str:
    """Return points as bars, at most ``width`` of them: the smallest is ``▁``, the largest ``█``.

    Each bar is the mean of its part of the points. Points that are not finite have no bar.
    """
    finite = [point for point in points if abs(point) < float("inf")]
    if len(finite) < 2 or width < 2:
        return ""
    count = min(width, len(finite))
    largest: float = max(abs(point) for point in finite) or 1.0
    scaled = [point / largest for point in finite]  # so that sums are finite, even of a loss that has exploded
    parts = [scaled[len(finite) * bar // count : len(finite) * (bar + 1) // count] for bar in range(count)]
    means = [sum(part) / len(part) for part in parts]
    low, span = min(means), max(means) - min(means)
    return "".join(BARS[int((mean - low) / span * (len(BARS) - 1) + 0.5) if span else 0] for mean in means)


class LossCurve:
    """The points of the newest run, recorded from now on, in a bounded memory: [(step, loss)].

    When the memory is full, every second point is dropped, and later points are recorded twice as far apart. Another
    run begins a new curve.
    """

    def __init__(self, most: int = 1000):
        self._most = most
        self._begin(None)

    def _begin(self, run: Optional[str]) -> None:
        self._run, self._least_apart = run, 1
        self.points: List[Tuple[int, float]] = []

    def add(self, status: RunStatus) -> None:
        """Record the loss of a status; if training went back to an earlier step, the curve continues from that step."""
        if status.run != self._run:
            self._begin(status.run)
        step, loss = status.global_step, status.loss
        if step is None or loss is None:
            return
        while self.points and self.points[-1][0] >= step:
            self.points.pop()
        if not self.points or step - self.points[-1][0] >= self._least_apart:
            self.points.append((step, loss))
        if len(self.points) > self._most:
            self.points = self.points[::2]
            self._least_apart = 2 * max(1, (step - self.points[0][0]) // self._most)
