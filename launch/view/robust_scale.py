"""A scale on which a few extreme values, such as the first losses, do not flatten a curve; a curve in one line."""

import math
from typing import List, NamedTuple, Sequence

BARS = "▁▂▃▄▅▆▇█"
STEEP = 100.0  # values of one sign whose quotient is as large have a logarithmic scale
OUTER = 10  # of so many values, one at either end may lie outside the scale
SMOOTHED = 16  # as many points are so noisy that each bar is the mean of its neighbours, too
WINDOW = 3


class Scale(NamedTuple):
    """A scale from ``low`` to ``high``; with ``is_log``, a scale of the decimal logarithms of the values."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return the place of a value on the scale, from 0 to 1."""
        span = self.high - self.low
        return min(1.0, max(0.0, (self._scaled(value) - self.low) / span)) if span > 0 else 0.0

    def value(self, share: float) -> float:
        """Return the value at the place ``share`` of the scale, from 0 to 1."""
        scaled = self.low + share * (self.high - self.low)
        return float(10**scaled) if self.is_log else scaled

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.is_log else value


def robust_scale(values: Sequence[float]) -> Scale:
    """Return a scale for finite values.

    The scale is logarithmic if all values are positive, and the largest is at least ``STEEP`` times the smallest. At
    each end, a few extreme values lie outside the scale if they would take more of it than all other values.

    Args:
      values: at least one.
    """
    is_log = min(values) > 0 and max(values) / min(values) >= STEEP
    ordered = sorted(math.log10(value) if is_log else value for value in values)
    outer = max(1, len(ordered) // OUTER) if len(ordered) > 4 else 0
    low, high = ordered[outer], ordered[-1 - outer]
    if ordered[-1] - high <= high - ordered[0]:
        high = ordered[-1]
    if low - ordered[0] <= high - low:
        low = ordered[0]
    return Scale(low, high, is_log)


def sparkline(points: Sequence[float], width: int) -> str:
    """Return points as bars, at most ``width`` of them: the smallest is ``▁``, the largest ``█``.

    Each bar is the mean of its part of the points. Points that are not finite have no bar.
    """
    finite = [point for point in points if abs(point) < math.inf]
    if len(finite) < 2 or width < 2:
        return ""
    largest: float = max(abs(point) for point in finite) or 1.0
    means = _means([point / largest for point in finite], min(width, len(finite)))  # sums of shares are finite
    if len(finite) >= SMOOTHED:
        means = [_mean(means[max(0, at - WINDOW // 2) : at + WINDOW // 2 + 1]) for at in range(len(means))]
    scale = robust_scale(means)
    return "".join(BARS[int(scale.share(mean) * (len(BARS) - 1) + 0.5)] for mean in means)


def _means(points: Sequence[float], count: int) -> List[float]:
    """Return the means of ``count`` parts of the points."""
    return [_mean(points[len(points) * part // count : len(points) * (part + 1) // count]) for part in range(count)]


def _mean(points: Sequence[float]) -> float:
    return sum(points) / len(points)
