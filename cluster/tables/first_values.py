"""The first value of a row: a function of its table's initializer, its key and the column.

So it does not matter when an id comes, which worker brings it, or on which server its row is.
"""

import math
from typing import Any, Callable, Dict, Sequence

from cluster.embedding import Table
from cluster.runtime.tf_compat import tf
from cluster.tables.keys import mix, salt, shift_right, signed

_STEP = 0x9E3779B97F4A7C15  # SplitMix64's: from one number of a sequence to the next
_BITS = 24  # of a float32 in [0, 1)


def first_values(tables: Sequence[Table], keys: Any, numbers: Any) -> Any:
    """Return the first values of rows, float32 [n, width], on the current device.

    Args:
      tables: all of one width.
      keys: int64 [n].
      numbers: int32 [n], the place of each row's table in ``tables``.
    """
    kinds = {each.initializer[0] for each in tables}
    low = _of_each(numbers, [each.initializer[1] for each in tables])
    if kinds == {"constant"}:
        return tf.tile(low, [1, tables[0].width])
    high = _of_each(numbers, [each.initializer[2] for each in tables])
    seeds = tf.constant([salt(f"{each.name} {each.initializer[3]}") for each in tables], tf.int64)
    start = mix(tf.bitwise.bitwise_xor(keys, tf.gather(seeds, numbers)))
    values: Dict[str, Callable[[], Any]] = {
        "constant": lambda: low,
        "uniform": lambda: low + (high - low) * _uniform(start, tables[0].width),
        "normal": lambda: low + high * _normal(start, tables[0].width),
    }
    found = None
    for kind in sorted(kinds):
        value = values[kind]() + tf.zeros([1, tables[0].width])
        is_kind = _of_each(numbers, [float(each.initializer[0] == kind) for each in tables]) > 0.5
        found = value if found is None else tf.where(tf.tile(is_kind, [1, tables[0].width]), value, found)
    return found


def _of_each(numbers: Any, values: Sequence[float]) -> Any:
    return tf.gather(tf.constant(values, tf.float32), numbers)[:, tf.newaxis]


def _uniform(start: Any, width: int) -> Any:
    """Return numbers in [0, 1), [n, width]."""
    return tf.cast(shift_right(_sequence(start, 0, width), 64 - _BITS), tf.float32) * 2.0**-_BITS


def _normal(start: Any, width: int) -> Any:
    """Return nearly normal numbers of mean 0 and deviation 1, [n, width], at most 4.9: sums of eight uniform ones.

    Sums of integers are the same wherever they are computed. Logarithms and cosines are not.
    """
    total = None
    for numbers in (_sequence(start, 0, width), _sequence(start, width, width)):
        for place in range(0, 64, 16):
            part = tf.bitwise.bitwise_and(shift_right(numbers, place), tf.constant(0xFFFF, tf.int64))
            total = part if total is None else total + part
    centre, deviation = 8 * (2.0**16 - 1) / 2, math.sqrt(8 * (2.0**32 - 1) / 12)
    return (tf.cast(total, tf.float32) - centre) * (1 / deviation)


def _sequence(start: Any, first: int, width: int) -> Any:
    """Return the numbers of each row's sequence from ``first`` on, int64 [n, width]."""
    places = [signed((first + column + 1) * _STEP % (1 << 64)) for column in range(width)]
    return mix(start[:, tf.newaxis] + tf.constant([places], tf.int64))
