"""Draw several curves on one scale, in lines of text."""

from typing import List, Optional, Sequence

from launch.status.run_history import CurvePoint
from launch.view.robust_scale import Scale, robust_scale

MARKS = "●○"  # of the first and of the second curve
BOTH = "◉"
HEIGHT = 11  # with the results of two runs, 24 lines in all

Curve = Sequence[CurvePoint]


def overlay(curves: Sequence[Curve], width: int, height: int = HEIGHT) -> List[str]:
    """Draw curves in lines of at most ``width`` characters; return an empty list if no curve has a point.

    Args:
      curves: the curves, at most one for each character of ``MARKS``.
    """
    points = [point for curve in curves for point in curve]
    if not points:
        return []
    first, last = min(point.step for point in points), max(point.step for point in points)
    scale = robust_scale([point.loss for point in points])
    labels = {row: f"{scale.value(1 - row / (height - 1)):.4g}" for row in (0, height // 2, height - 1)}
    left = max(map(len, labels.values())) + 2
    columns = max(2, width - left)
    cells = [[" "] * columns for _ in range(height)]
    for mark, curve in zip(MARKS, curves):
        _draw(cells, mark, _rows(curve, scale, first, last, columns, height))
    lines = [f"{labels.get(row, ''):>{left - 2}} {'┤' if row in labels else '│'}" for row in range(height)]
    lines = [line + "".join(row).rstrip() for line, row in zip(lines, cells)]
    ends = f"step {first}", f"step {last}"
    below = " " * (left - 1) + "└" + "─" * columns
    return [*lines, below, " " * left + ends[0] + ends[1].rjust(columns - len(ends[0]))]


def _rows(curve: Curve, scale: Scale, first: int, last: int, columns: int, height: int) -> List[Optional[int]]:
    """Return the row of a curve in each column: the mean of its points there, or of the points around the column."""
    found: List[List[float]] = [[] for _ in range(columns)]
    for point in curve:
        found[(point.step - first) * (columns - 1) // max(1, last - first)].append(scale.share(point.loss))
    shares = [sum(each) / len(each) if each else None for each in found]
    known = [column for column, share in enumerate(shares) if share is not None]
    rows: List[Optional[int]] = [None] * columns
    for left, right in zip(known, known[1:] or known):
        for column in range(left, right + 1):
            way = (column - left) / max(1, right - left)
            share = (shares[left] or 0.0) * (1 - way) + (shares[right] or 0.0) * way
            rows[column] = round((1 - share) * (height - 1))
    return rows


def _draw(cells: List[List[str]], mark: str, rows: Sequence[Optional[int]]) -> None:
    """Draw a curve without gaps between the rows of neighbouring columns."""
    before: Optional[int] = None
    for column, row in enumerate(rows):
        if row is None:
            continue
        for each in [row] if before is None else _between(before, row):
            cells[each][column] = mark if cells[each][column] in (" ", mark) else BOTH
        before = row


def _between(before: int, row: int) -> Sequence[int]:
    return range(before + 1, row + 1) if row > before else range(row, before) if row < before else [row]
