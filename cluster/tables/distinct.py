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
    found, where = tf.unique(mix(tf.concat(list(ids), 0) + salts))
    order = tf.argsort(found)
    places = tf.gather(tf.math.invert_permutation(order), where)
    of_keys = tf.dynamic_stitch([places], [numbers])
    with tf.control_dependencies([refuse_collisions(tf.gather(of_keys, places), numbers)]):
        keys = tf.gather(found, order)
    split = tf.split(tf.cast(places, tf.int64), sizes) if len(sizes) > 1 else [tf.cast(places, tf.int64)]
    return Distinct(keys, of_keys, split)


def summed(keys: Any, grads: Sequence[Any]) -> Any:
    """Return one gradient of several: its rows have the keys [n] at their places, and each key is there once.

    ``keys`` are ascending, as are those of the gradient. Keys without a gradient are left out.
    """
    values, places = _joined(grads)
    size = tf.size(keys)
    has_grad = tf.dynamic_stitch([tf.range(size), places], [tf.zeros([size], tf.int32), tf.ones_like(places)])
    kept = where_true(has_grad > 0)
    places = tf.gather(tf.cumsum(has_grad) - 1, places)
    return MergedRows(tf.math.unsorted_segment_sum(values, places, tf.size(kept)), tf.gather(keys, kept))


def summed_by_key(keys: Any, grads: Sequence[Any]) -> Any:
    """Return the same where ``keys`` are in any order, and may be there more than once."""
    values, places = _joined(grads)
    return merge_rows(tf.IndexedSlices(values, tf.gather(keys, places)))


def _joined(grads: Sequence[Any]) -> Any:
    values = tf.concat([grad.values for grad in grads], 0)
    return values, tf.cast(tf.concat([grad.indices for grad in grads], 0), tf.int32)
