"""Areas under the ROC curve: how well scores rank examples of two kinds, of any number, in bounded memory.

Equal scores are one row of a table, with the weights of their positive and of their negative examples. So areas are
exact for as many different scores as the table has rows. When there are more, neighbouring scores become a range with
one row, of about equal weights: the idea of a quantile summary (Greenwald and Khanna, 2001). A score of much weight
keeps a row of its own. The order of two examples is unknown only within a range, where they count half. So the weights
in the ranges bound the error.

Many groups, such as users, are not helped by ranges: each has few examples. Then the table keeps all examples of some
groups, drawn by a hash of the group.
"""

from typing import List, Mapping, NamedTuple, Set

import numpy as np

MOST_ROWS = 1 << 19  # of 44 bytes each; half as many more wait until they are joined
MOST_OF_GROUPS = 1 << 21  # rows, where examples have groups
FEW_GROUPS = 1000  # so many have ranges; of more, some groups are drawn


class RankedRows(NamedTuple):
    """Examples whose scores are from ``low`` to ``high``, of one slice and one group: their weights, by their kind."""

    slice: np.ndarray
    group: np.ndarray
    low: np.ndarray
    high: np.ndarray
    positive: np.ndarray
    negative: np.ndarray

    def taken(self, which: np.ndarray) -> "RankedRows":
        """Return some rows, by their numbers or a mask."""
        return RankedRows(*(each[which] for each in self))

    @property
    def number(self) -> int:
        """Return the number of rows."""
        return len(self.low)


_NONE = RankedRows(*(np.zeros(0, kind) for kind in "iqdddd"))


class Area(NamedTuple):
    """An area under the curve, NaN if undefined; ``error`` bounds its distance from the exact area."""

    value: float
    error: float = 0.0


class RankedScores:
    """The scores of examples of two kinds, for the areas under the curve of all slices together, or of some.

    Attributes:
      level: of the groups, 1 in 2 ** level is measured.
    """

    def __init__(self, is_grouped: bool):
        self._most = MOST_OF_GROUPS if is_grouped else MOST_ROWS
        self._rows = _NONE
        self._new: List[RankedRows] = []
        self._waiting = self.level = 0
        self._undefined: Set[int] = set()  # slices with a score that is not a number

    def add(self, slices: np.ndarray, parts: Mapping[str, np.ndarray]) -> None:
        """Add examples.

        Args:
          slices: the number of each example's slice, [n].
          parts: [n] each: ``label``, above 0.5 for a positive example, ``score``, and perhaps ``weight`` and ``group``.
        """
        score = parts["score"].astype(np.float64)
        weight, group = (parts.get(part, default) for part, default in (("weight", 1.0), ("group", 0)))
        is_positive = parts["label"] > 0.5
        positive, negative = np.where(is_positive, weight, 0.0), np.where(is_positive, 0.0, weight)
        rows = RankedRows(slices, np.broadcast_to(group, len(score)), score, score, positive, negative)
        unknown = np.isnan(score)
        if unknown.any():
            self._undefined.update(slices[unknown].tolist())
            rows = rows.taken(~unknown)
        self._new.append(self._drawn(rows))
        self._waiting += self._new[-1].number
        if self._waiting > self._most // 2:
            self._join()

    def area(self, which: np.ndarray) -> Area:
        """Return the area of the examples of some slices; with groups, the mean of the groups' areas by their weights.

        Args:
          which: whether each slice counts, by its number.
        """
        self._join()
        if any(which[each] for each in self._undefined):
            return Area(float("nan"))
        return _area(self._rows.taken(which[self._rows.slice]))

    def _drawn(self, rows: RankedRows) -> RankedRows:
        if not self.level:
            return rows
        mixed = (rows.group.astype(np.uint64) ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
        return rows.taken(mixed >> np.uint64(64 - self.level) == 0)

    def _join(self) -> None:
        """Take the new rows into the table."""
        if not self._new:
            return
        joined = [np.concatenate(each) for each in zip(self._rows, *self._new)]
        self._rows, self._new, self._waiting = _NONE, [], 0
        rows = _joined(RankedRows(*joined))
        ranges = _of_ranges(rows)[-1] + 1 if rows.number else 0
        while rows.number > self._most:
            ranges //= 2
            if ranges and len(np.unique(rows.group)) <= FEW_GROUPS:
                rows = _wider(rows, ranges)
            else:
                self.level += 1
                rows = self._drawn(rows)
        self._rows = rows


def _joined(rows: RankedRows) -> RankedRows:
    """Return rows, sorted by their lowest score, with ranges that overlap as one range."""
    rows = rows.taken(np.argsort(rows.low, kind="stable"))
    reach = np.maximum.accumulate(rows.high)
    return _together(rows, np.cumsum(np.concatenate([[False], rows.low[1:] > reach[:-1]])) if rows.number else reach)


def _of_ranges(rows: RankedRows) -> np.ndarray:
    """Return the number of each row's range; the rows are sorted."""
    return np.cumsum(_begins(rows.low)) - 1


def _wider(rows: RankedRows, number: int) -> RankedRows:
    """Return rows with about so many ranges of equal weight, but for scores of more weight: those stay as they are."""
    of = _of_ranges(rows)
    shares = [np.bincount(of, kind) / max(kind.sum(), 1e-300) for kind in (rows.positive, rows.negative)]
    share = (shares[0] + shares[1]) / 2
    begins = _begins(np.floor((np.cumsum(share) - share) * number)) | (share * number >= 1)
    return _together(rows, (np.cumsum(begins) - 1)[of])


def _together(rows: RankedRows, of: np.ndarray) -> RankedRows:
    """Return one row for each slice and group of each range; ``of`` has the number of each row's range, ascending."""
    if not rows.number:
        return rows
    starts = np.flatnonzero(_begins(of))
    number = np.cumsum(_begins(of)) - 1
    low, high = np.minimum.reduceat(rows.low, starts)[number], np.maximum.reduceat(rows.high, starts)[number]
    rows = rows._replace(low=low, high=high)
    if rows.slice.any() or rows.group.any():
        order = np.lexsort((rows.slice, rows.group, number))
        rows, number = rows.taken(order), number[order]
    first = np.flatnonzero(_begins(number) | _begins(rows.group) | _begins(rows.slice))
    sums = [np.add.reduceat(each, first) for each in (rows.positive, rows.negative)]
    return RankedRows(*(each[first] for each in rows[:4]), *sums)


def _area(rows: RankedRows) -> Area:
    """Return the mean of the groups' areas, each computed from ranks (Mann and Whitney, 1947)."""
    if not rows.number:
        return Area(float("nan"))
    rows = rows.taken(np.lexsort((rows.low, rows.group)))
    first = np.flatnonzero(_begins(rows.group) | _begins(rows.low))  # of each range of a group
    p, n = (np.add.reduceat(each, first) for each in (rows.positive, rows.negative))
    groups = np.flatnonzero(_begins(rows.group[first]))
    below = np.cumsum(n) - n
    below -= np.repeat(below[groups], np.diff([*groups, len(n)]))
    unknown = np.where(rows.low[first] < rows.high[first], p * n / 2, 0.0)
    won, unknown, positive, negative = (np.add.reduceat(each, groups) for each in (p * (below + n / 2), unknown, p, n))
    counts = (positive > 0) & (negative > 0)
    if not counts.any():
        return Area(float("nan"))
    weight = (positive + negative)[counts]
    shares = weight / weight.sum() / (positive * negative)[counts]
    return Area(float((won[counts] * shares).sum()), float((unknown[counts] * shares).sum()))


def _begins(values: np.ndarray) -> np.ndarray:
    """Return whether each value differs from the one before."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] != values[:-1]
    return found
