"""First values of rows: a function of the table's initializer, the row's key and the column.

So it does not matter when an id is first looked up, by which worker, or on which server its row is.
"""

import math
from numbers import Real
from typing import Any, Callable, Dict, Sequence, Tuple

from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.row_keys import mix, shift_right
from cluster.recommend.tables.splitmix import STEP, salt, signed
from cluster.runtime.tf_compat import is_of_tensorflow, tf

_BITS = 24  # of a float32 in [0, 1)


def first_value_of(name: str, initializer: Any) -> Tuple[str, float, float, int]:
    """Return what is known of the initializer of the table ``name``: kind, two numbers, seed.

    An initializer of TensorFlow or Keras, or Keras's name of one, describes itself by its ``get_config``.

    Raises:
      ValueError: no row can begin with its values.
    """
    try:
        made = tf.keras.initializers.get(initializer) if isinstance(initializer, str) else initializer
        made = made() if isinstance(made, type) else made
        kind, config = (type(made).__name__, made.get_config()) if is_of_tensorflow(made) else ("", {})
        seed = int(config.get("seed") or 0)
    except (ValueError, TypeError):  # an unknown name, a class that needs arguments, or Keras's generator of seeds
        kind = ""
    if kind in ("Zeros", "Ones"):
        return "constant", float(kind == "Ones"), 0.0, 0
    if kind == "Constant" and isinstance(config["value"], Real):
        return "constant", float(config["value"]), 0.0, 0
    if kind == "RandomUniform":
        return "uniform", float(config["minval"]), float(1.0 if config["maxval"] is None else config["maxval"]), seed
    if kind == "RandomNormal":
        return "normal", float(config["mean"]), float(config["stddev"]), seed
    raise ValueError(
        f"embedding.table {name!r}: expected a zeros, ones, constant, random_uniform or random_normal initializer,"
        f" found {initializer!r}"
    )


def first_values(tables: Sequence[Table], keys: Any, numbers: Any) -> Any:
    """Return the first values of rows, float32 [n, width], on the current device.

    Args:
      tables: tables of one width.
      keys: the keys of the rows, int64 [n].
      numbers: the index in ``tables`` of each row's table, int32 [n].
    """
    kinds, width = {each.initializer[0] for each in tables}, tables[0].width
    low = _of_each(numbers, [each.initializer[1] for each in tables])
    if kinds == {"constant"}:
        return low + tf.zeros(tf.stack([tf.size(numbers), width]))
    high = _of_each(numbers, [each.initializer[2] for each in tables])
    seeds = tf.constant([salt(f"{each.name} {each.initializer[3]}") for each in tables], tf.int64)
    start = mix(tf.bitwise.bitwise_xor(keys, tf.gather(seeds, numbers)))
    values: Dict[str, Callable[[], Any]] = {
        "constant": lambda: low + tf.zeros(tf.stack([tf.size(numbers), width])),
        "uniform": lambda: low + (high - low) * _uniform(start, width),
        "normal": lambda: low + high * _normal(start, width),
    }
    found = None
    for kind in sorted(kinds):
        is_kind = _of_each(numbers, [float(each.initializer[0] == kind) for each in tables]) > 0.5
        value = values[kind]()
        found = value if found is None else tf.where(tf.tile(is_kind, [1, width]), value, found)
    return found


def _of_each(numbers: Any, values: Sequence[float]) -> Any:
    """Return the value of each number's table, [n, 1]; [1, 1] where all are the same, which costs less to use."""
    if len(set(values)) == 1:
        return tf.constant([values[:1]], tf.float32)
    return tf.gather(tf.constant(values, tf.float32), numbers)[:, tf.newaxis]


def _uniform(start: Any, width: int) -> Any:
    """Return numbers in [0, 1), [n, width]: of each number of the sequence, the high bits and then the low ones."""
    numbers = _sequence(start, (width + 1) // 2)
    low = tf.bitwise.bitwise_and(numbers, tf.constant((1 << _BITS) - 1, tf.int64))
    both = tf.concat([shift_right(numbers, 64 - _BITS), low], 1)
    return tf.cast(both[:, :width], tf.float32) * 2.0**-_BITS


def _normal(start: Any, width: int) -> Any:
    """Return nearly normal numbers of mean 0 and deviation 1, [n, width], at most 3.5: sums of four uniform ones.

    Sums of integers are the same wherever they are computed. Logarithms and cosines are not.
    """
    both = _halves(_sequence(start, width))
    total = tf.bitwise.bitwise_and(both, tf.constant(0xFFFFFFFF, tf.int64)) + shift_right(both, 32)
    centre, deviation = 4 * (2.0**16 - 1) / 2, math.sqrt(4 * (2.0**32 - 1) / 12)
    return (tf.cast(total, tf.float32) - centre) * (1 / deviation)


def _halves(numbers: Any) -> Any:
    """Return two sums in one number: of the low and of the high 16 bits of each 32."""
    fields = tf.constant(0x0000FFFF0000FFFF, tf.int64)
    return tf.bitwise.bitwise_and(numbers, fields) + tf.bitwise.bitwise_and(shift_right(numbers, 16), fields)


def _sequence(start: Any, length: int) -> Any:
    """Return the first numbers of each row's sequence, int64 [n, length]."""
    places = [signed((column + 1) * STEP % (1 << 64)) for column in range(length)]
    return mix(start[:, tf.newaxis] + tf.constant([places], tf.int64))
