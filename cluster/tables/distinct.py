"""The keys that some lookups ask for, each once and in order; and gradients that name rows by places among them."""

from typing import Any, List, NamedTuple, Sequence

from cluster.embedding import Table
from cluster.runtime.gradients import MergedRows, merge_rows
from cluster.runtime.tensors import where_true
from cluster.runtime.tf_compat import tf
from cluster.tables.keys import mix, refuse_collisions, salt


class Distinct(NamedTuple):
    """The keys of some ids.

    ``keys`` is int64 [n], each once and ascending. ``tables`` has the numbers of their tables, int32 [n]. ``places``
    has for each tensor of ids where its ids' keys are among these, int64.
    """

    keys: Any
    tables: Any
    places: List[Any]


def distinct(ids: Sequence[Any], of: Sequence[Table], tables: Sequence[Table]) -> Distinct:
    """Return the keys of tensors of ids, int64 [any] each.

    Args:
      of: the table of each tensor.
      tables: all, in the order of their numbers.
    """
    sizes = [tf.size(each) for each in ids]
    numbers = tf.concat([tf.fill([size], tables.index(table)) for size, table in zip(sizes, of)], 0)
    salts = tf.gather(tf.constant([salt(table.name) for table in tables], tf.int64), numbers)
    all_keys = mix(tf.concat(list(ids), 0) + salts)
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
    """One gradient of several, and which keys [n] it has rows for, bool [n]; None where nobody asked for that."""

    grad: Any
    has_grad: Any


def summed(keys: Any, grads: Sequence[Any]) -> Summed:
    """Return one gradient of several: its rows have the keys [n] at their places, and each key is there once.

    ``keys`` are ascending, as are those of the gradient. Keys without a gradient are left out.
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
    """Return the same where ``keys`` are in any order, and may be there more than once."""
    values, places = _joined(grads)
    return Summed(merge_rows(tf.IndexedSlices(values, tf.gather(keys, places))), None)


def chosen(keys: Any, mask: Any) -> Any:
    """Return those of the keys [n] for which the mask, bool [n], is true.

    The operation fails where the mask is of other keys, of which there is another number.
    """
    message = "the rows of a gradient are not those that its step looked up"
    with tf.control_dependencies([tf.debugging.assert_equal(tf.size(mask), tf.size(keys), message=message)]):
        return tf.gather(keys, where_true(mask))


def _joined(grads: Sequence[Any]) -> Any:
    values = tf.concat([grad.values for grad in grads], 0)
    return values, tf.cast(tf.concat([grad.indices for grad in grads], 0), tf.int32)
