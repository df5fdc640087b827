"""The shapes of models that are nothing but variables of a known size."""

from typing import Callable, Dict, List

import numpy as np

_ROW = 250  # float32 values: a row has 1000 bytes
_LARGEST = 0.6  # of the bytes, in the largest of uneven variables


def even(megabytes: float, number: int) -> List[List[int]]:
    """``number`` variables of the same size, to a row; together ``megabytes`` (of 10^6 bytes)."""
    return _shapes(_shared(_rows(megabytes), [1.0] * number))


def uneven(megabytes: float, number: int) -> List[List[int]]:
    """One variable with 60 % of the bytes, as a first dense layer may have, and others that get ever smaller."""
    rows = _rows(megabytes)
    largest = round(_LARGEST * rows)
    return _shapes([*_shared(rows - largest, [1 / (1 + index) for index in range(number - 1)]), largest])


def odd(megabytes: float, number: int) -> List[List[int]]:
    """Matrices of odd sides, a few of them much larger than the others, as models have, and a vector of the rest."""
    values = round(megabytes * 1e6 / 4)
    sides = np.random.RandomState(1).gamma(2.0, 1.0, [number - 1, 2]) + 0.2
    scale = np.sqrt(values / np.prod(sides, 1).sum())
    matrices = [[max(1, int(side)) for side in pair] for pair in sides * scale]
    return [*matrices, [values - sum(rows * columns for rows, columns in matrices)]]


def _rows(megabytes: float) -> int:
    return round(megabytes * 1e6 / (4 * _ROW))


def _shared(rows: int, weights: List[float]) -> List[int]:
    """The rows dealt out by weight, at least one to each; what rounding leaves goes to the first."""
    lengths = [max(1, int(rows * weight / sum(weights))) for weight in weights]
    return [lengths[0] + rows - sum(lengths), *lengths[1:]]


def _shapes(lengths: List[int]) -> List[List[int]]:
    return [[length, _ROW] for length in lengths]


KINDS: Dict[str, Callable[[float, int], List[List[int]]]] = {"uneven": uneven, "equal": even, "odd": odd}
