"""Numbers of the hash and salts of tables; first values of rows with numpy alone, for a program without TensorFlow.

``row_keys`` and ``initializers`` compute the same in a graph, and name the source of the hash.
"""

import hashlib
import math
from typing import Any, Tuple

import numpy as np

STEP = 0x9E3779B97F4A7C15  # from one number of a sequence to the next
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # the shift of each round, and its factor
LAST_SHIFT = 31


def signed(number: int) -> int:
    """Return the int64 that has the same bits as ``number``, an unsigned number of 64 bits."""
    return number - (1 << 64) if number >= 1 << 63 else number


def salt(name: str) -> int:
    """Return the salt of a table, a hash of its ``name`` that is an int64."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little", signed=True)


def first_rows(table: str, initializer: Tuple[str, float, float, int], ids: np.ndarray, width: int) -> np.ndarray:
    """Return the first values of the rows of ``ids`` [n], float32 [n, width].

    Args:
      table: the name of the table.
      initializer: kind, two numbers and seed, as in a delta.
    """
    kind, first, second, seed = initializer
    low, high = np.float32(first), np.float32(second)
    if kind == "constant":
        return np.full([len(ids), width], low)
    with np.errstate(over="ignore"):
        keys = _mixed(ids.astype(np.int64).view(np.uint64) + _salt(table))
        start = _mixed(keys ^ _salt(f"{table} {seed}"))
        places = np.array([(column + 1) * STEP % (1 << 64) for column in range(width)], np.uint64)
        numbers = _mixed(start[:, np.newaxis] + places)
    if kind == "uniform":
        half = numbers[:, : (width + 1) // 2]
        bits = np.concatenate([half >> np.uint64(40), half & np.uint64((1 << 24) - 1)], 1)[:, :width]
        return low + (high - low) * (bits.astype(np.float32) * np.float32(2.0**-24))
    total: Any = sum((numbers >> np.uint64(place)) & np.uint64(0xFFFF) for place in (0, 16, 32, 48))
    deviation = math.sqrt(4 * (2.0**32 - 1) / 12)
    normal: np.ndarray = (total.astype(np.float32) - np.float32(2 * (2.0**16 - 1))) * np.float32(1 / deviation)
    return low + high * normal


def _salt(name: str) -> Any:
    return np.array(salt(name)).view(np.uint64)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return SplitMix64's hash of each of ``numbers``, uint64."""
    for shift, factor in ROUNDS:
        numbers = (numbers ^ numbers >> np.uint64(shift)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(LAST_SHIFT)
