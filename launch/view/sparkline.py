"""A curve in one line of text."""

from typing import Sequence

BARS = "▁▂▃▄▅▆▇█"


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
