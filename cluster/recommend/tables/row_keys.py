"""Keys of rows: the ids of all tables, hashed to int64 numbers; and the distinct keys of one step.

A key is ``mix(id + salt of the table's name)``. ``mix`` is a bijection, so two ids of one table never have the same
key. Ids of two tables may have the same key, with a probability of 2^-64 for each pair. A server detects this, and
fails the step.

A step looks up each key once, in ascending order. Gradients then refer to a row by the index of its key.

The hash function is that of SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.
"""

from functools import partial
from typing import Any, List, NamedTuple, Sequence

from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.splitmix import LAST_SHIFT, ROUNDS, salt, signed
from cluster.runtime.gradients import MergedRows, merge_rows
from cluster.runtime.tensors import call, cond, where_true
from cluster.runtime.tf_compat import tf

_BUCKET_BITS = 64 - 12
BUCKETS = 1 << 12


def salts(tables: Sequence[Table]) -> Any:
    """Return the salts of ``tables``, int64 [tables]."""
    return tf.constant([salt(table.name) for table in tables], tf.int64)


def keys_of(ids: Any, tables: Any, of_tables: Any) -> Any:
    """Return the keys of ``ids`` [n], int64 [n].

    Args:
      tables: the number of each id's table, [n].
      of_tables: the ``salts`` of all tables.
    """
    return mix(ids + tf.gather(of_tables, tables))


def ids_of(keys: Any, tables: Any, of_tables: Any) -> Any:
    """Return the ids [n] for which ``keys_of`` returns ``keys`` [n], with the same ``tables`` and ``of_tables``."""
    return unmix(keys) - tf.gather(of_tables, tables)


def mix(numbers: Any) -> Any:
    """Return an int64 hash of each of ``numbers``, int64 of any shape.

    Different numbers have different hashes.
    """
    return call("mix", _mix, numbers)


def _mix(numbers: Any) -> Any:
    for shift, factor in ROUNDS:
        numbers = _xor_shifted(numbers, shift) * tf.constant(signed(factor), tf.int64)
    return _xor_shifted(numbers, LAST_SHIFT)


def shift_right(numbers: Any, by: int) -> Any:
    """Return ``numbers``, int64, shifted to the right by ``by`` bits; zeros fill the left side."""
    unsigned = tf.bitcast(numbers, tf.uint64)
    return tf.bitcast(tf.bitwise.right_shift(unsigned, tf.constant(by, tf.uint64)), tf.int64)


def _xor_shifted(numbers: Any, by: int) -> Any:
    return tf.bitwise.bitwise_xor(numbers, shift_right(numbers, by))


def owners(keys: Any, servers: int) -> Any:
    """Return the index of the server that owns each of ``keys``, int32; a server owns one contiguous range of keys."""
    return call(f"owners {servers}", lambda each: _bucket(each) * servers // BUCKETS, keys)


def runs(keys: Any, servers: int) -> Any:
    """Return how many of the ascending ``keys`` [n] each server owns, int32 [servers]."""
    firsts = [-(-server * BUCKETS // servers) for server in range(1, servers)]  # the first bucket of each server
    starts = tf.constant([(bucket - BUCKETS // 2) << _BUCKET_BITS for bucket in firsts], tf.int64)
    ends = tf.concat([[0], tf.searchsorted(keys, starts), [tf.size(keys)]], 0)
    return ends[1:] - ends[:-1]


def _bucket(keys: Any) -> Any:
    # The shift keeps the sign: the lowest key is in the first bucket.
    return tf.cast(tf.bitwise.right_shift(keys, tf.constant(_BUCKET_BITS, tf.int64)), tf.int32) + BUCKETS // 2


def refuse_collisions(keys: Any, held: Any, tables: Any, names: Sequence[str]) -> Any:
    """Make the operation that fails if one of ``keys`` [n] is the key of ids in two tables.

    The error names both tables and their ids.

    Args:
      held, tables: two table numbers for each key, int32 [n]. If they differ, ids of two tables have this key.
      names: the names of all tables, in the order of their numbers.
    """

    def fail() -> Any:
        text = call(f"collision {[*names]}", partial(_collision, names), keys, held, tables)
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[text])]):
            return tf.constant(False)

    return cond(tf.reduce_all(tf.equal(held, tables)), lambda: tf.constant(True), fail).op


def _collision(names: Sequence[str], keys: Any, held: Any, tables: Any) -> Any:
    first = where_true(tf.not_equal(held, tables))[0]
    both = tf.stack([held[first], tables[first]])
    ids = unmix(keys[first]) - tf.gather(tf.constant([salt(each) for each in names], tf.int64), both)
    found = tf.strings.join([tf.gather(tf.constant([*names]), both), tf.strings.as_string(ids)], ": id ")
    listed = tf.strings.reduce_join(found, separator=" and ")
    return tf.strings.join(["two tables have ids with the same key, ", listed, "; give one table another name"])


def unmix(numbers: Any) -> Any:
    """Return the numbers for which ``mix`` returns ``numbers``."""
    return call("unmix", _unmix, numbers)


def _unmix(numbers: Any) -> Any:
    numbers = _unshifted(numbers, LAST_SHIFT)
    for shift, factor in reversed(ROUNDS):
        numbers = _unshifted(numbers * tf.constant(signed(_inverse(factor)), tf.int64), shift)
    return numbers


def _inverse(odd: int) -> int:
    """Return the inverse of an odd number modulo 2^64, by Newton's iteration."""
    found = odd
    for _ in range(6):
        found = found * (2 - odd * found) % (1 << 64)
    return found


def _unshifted(numbers: Any, by: int) -> Any:
    """Undo ``n ^ (n >> by)``."""
    found = numbers
    for _ in range(64 // by):
        found = tf.bitwise.bitwise_xor(numbers, shift_right(found, by))
    return found


class Distinct(NamedTuple):
    """The distinct keys of some ids.

    ``keys`` is int64 [n], ascending. ``tables`` has the number of each key's table, int32 [n]. ``places`` has an int64
    tensor for each tensor of ids: for every id, the index of its key in ``keys``.
    """

    keys: Any
    tables: Any
    places: List[Any]


def distinct(ids: Sequence[Any], of: Sequence[Table], tables: Sequence[Table]) -> Distinct:
    """Return the distinct keys of ``ids``, a list of int64 tensors [any].

    Args:
      of: the table of each tensor of ids.
      tables: all tables, in the order of their numbers.
    """
    sizes = [tf.size(each) for each in ids]
    numbers = tf.concat([tf.fill([size], tables.index(table)) for size, table in zip(sizes, of)], 0)
    all_keys = keys_of(tf.concat(list(ids), 0), numbers, salts(tables))
    found, where = tf.unique(all_keys)
    order = tf.argsort(found)
    places = tf.gather(tf.math.invert_permutation(order), where)
    of_keys = tf.dynamic_stitch([places], [numbers])
    names = [table.name for table in tables]
    with tf.control_dependencies([refuse_collisions(all_keys, tf.gather(of_keys, places), numbers, names)]):
        keys = tf.gather(found, order)
    split = tf.split(tf.cast(places, tf.int64), sizes) if len(sizes) > 1 else [tf.cast(places, tf.int64)]
    return Distinct(keys, of_keys, split)


class Summed(NamedTuple):
    """The sum of several gradients.

    ``has_grad``, bool [n]: for each of the step's keys, whether ``grad`` has its row; None from ``summed_by_key``.
    """

    grad: Any
    has_grad: Any


def summed(keys: Any, grads: Sequence[Any]) -> Summed:
    """Return the sum of ``grads``. The indices of ``grads`` are positions in ``keys`` [n]; those of the sum are keys.

    ``keys`` are distinct and ascending, as are the keys of the sum. The sum has no rows for keys without a gradient.
    """
    values, places = _joined(grads)
    size = tf.size(keys)
    count = tf.dynamic_stitch([tf.range(size), places], [tf.zeros([size], tf.int32), tf.ones_like(places)])
    has_grad = count > 0
    kept = where_true(has_grad)
    places = tf.gather(tf.cumsum(count) - 1, places)
    grad = MergedRows(tf.math.unsorted_segment_sum(values, places, tf.size(kept)), tf.gather(keys, kept))
    return Summed(grad, has_grad)


def summed_by_key(keys: Any, grads: Sequence[Any]) -> Summed:
    """Return the same sum as ``summed``, for ``keys`` in any order, in which keys may occur more than once."""
    values, places = _joined(grads)
    return Summed(merge_rows(tf.IndexedSlices(values, tf.gather(keys, places))), None)


def chosen(keys: Any, mask: Any) -> Any:
    """Return the elements of ``keys`` [n] at which ``mask``, bool [n], is true.

    The operation fails if ``mask`` has another length, because it then belongs to other keys.
    """
    message = "the rows of a gradient differ from the rows that its step looked up"
    with tf.control_dependencies([tf.debugging.assert_equal(tf.size(mask), tf.size(keys), message=message)]):
        return tf.gather(keys, where_true(mask))


def _joined(grads: Sequence[Any]) -> Any:
    values = tf.concat([grad.values for grad in grads], 0)
    return values, tf.cast(tf.concat([grad.indices for grad in grads], 0), tf.int32)
