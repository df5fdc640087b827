"""Keys: the ids of all tables as well-spread int64 numbers, and back.

A key is ``mix(id + salt of the table's name)``. ``mix`` is a bijection, so two ids of one table never have the same
key. Ids of two tables may, with a chance of 2^-64 a pair. A server notices that, and refuses.

The mixing is that of SplitMix64: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.
"""

import hashlib
from functools import partial
from typing import Any, Sequence

from cluster.runtime.conditional import cond
from cluster.runtime.tensors import call, where_true
from cluster.runtime.tf_compat import tf

_BUCKET_BITS = 64 - 12
BUCKETS = 1 << 12
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST = 31


def signed(number: int) -> int:
    """Return the int64 with the bits of an unsigned number."""
    return number - (1 << 64) if number >= 1 << 63 else number


def salt(name: str) -> int:
    """Return the int64 that belongs to a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little", signed=True)


def mix(numbers: Any) -> Any:
    """Return well-spread int64 numbers for int64 numbers of any shape; equal ones for equal ones only."""
    return call("mix", _mix, numbers)


def _mix(numbers: Any) -> Any:
    for shift, factor in _ROUNDS:
        numbers = _xor_shifted(numbers, shift) * tf.constant(signed(factor), tf.int64)
    return _xor_shifted(numbers, _LAST)


def shift_right(numbers: Any, by: int) -> Any:
    """Return int64 numbers shifted to the right, with zeros from the left."""
    unsigned = tf.bitcast(numbers, tf.uint64)
    return tf.bitcast(tf.bitwise.right_shift(unsigned, tf.constant(by, tf.uint64)), tf.int64)


def _xor_shifted(numbers: Any, by: int) -> Any:
    return tf.bitwise.bitwise_xor(numbers, shift_right(numbers, by))


def owners(keys: Any, servers: int) -> Any:
    """Return the index of each key's server, int32: contiguous runs of keys, in their order."""
    return call(f"owners {servers}", lambda each: _bucket(each) * servers // BUCKETS, keys)


def runs(keys: Any, servers: int) -> Any:
    """Return how many of ascending keys [n] each server has, int32 [servers]."""
    firsts = [-(-server * BUCKETS // servers) for server in range(1, servers)]  # the first bucket of each server
    starts = tf.constant([(bucket - BUCKETS // 2) << _BUCKET_BITS for bucket in firsts], tf.int64)
    ends = tf.concat([[0], tf.searchsorted(keys, starts), [tf.size(keys)]], 0)
    return ends[1:] - ends[:-1]


def _bucket(keys: Any) -> Any:
    # The shift keeps the sign: the lowest key is in the first bucket.
    return tf.cast(tf.bitwise.right_shift(keys, tf.constant(_BUCKET_BITS, tf.int64)), tf.int32) + BUCKETS // 2


def refuse_collisions(keys: Any, held: Any, tables: Any, names: Sequence[str]) -> Any:
    """Make the operation that fails where one of keys [n] is of two tables: ``held`` and ``tables``, int32 [n].

    The error has both tables and their ids.

    Args:
      names: of all tables, in the order of their numbers.
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
    """Undo ``mix``."""
    return call("unmix", _unmix, numbers)


def _unmix(numbers: Any) -> Any:
    numbers = _unshifted(numbers, _LAST)
    for shift, factor in reversed(_ROUNDS):
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
