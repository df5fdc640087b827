"""Places for rows in a store: which are taken, and which are free again.

Places are taken in order. A place whose row was removed waits in a ring until a new row takes it.
"""

from typing import Any

from cluster.runtime.declared import count_from_zero, reserve
from cluster.runtime.tf_compat import tf

FREE = -1  # as the time of a row's last update


class Places:
    """Make what hands out the places of a store, on the current device.

    Args:
      name: of the store.
      reserved: int32, how many places to make.
      used: int32 [capacity], when each row was updated last, or ``FREE``.
      full: the words for a store without free places.
      returns: whether places are ever given back.
    """

    def __init__(self, name: str, reserved: Any, used: Any, full: str, returns: bool):
        self._used, self._full, self._returns = used, full, returns
        self._capacity = tf.raw_ops.Shape(input=used, out_type=tf.int64)[0]  # not what it was declared with
        self.count = count_from_zero(f"{name}/count")  # places that were ever taken: the first so many
        self.variables = [self.count]
        if returns:
            self._ring = reserve(f"{name}/free", [], tf.int32, reserved)
            self._given, self._retaken = (count_from_zero(f"{name}/{each}") for each in ("given_back", "retaken"))
            self.variables += [self._ring, self._given, self._retaken]

    def take(self, number: Any) -> Any:
        """Return so many places, int64 [number], for rows that the caller writes and marks as used."""
        if not self._returns:
            return self._take_new(number)
        free = self._given.read_value() - self._retaken.read_value()
        again = tf.minimum(number, tf.maximum(free, 0))
        end = tf.identity(tf.assign_add(self._retaken, again, use_locking=True))
        old = tf.cast(tf.gather(self._ring, tf.range(end - again, end) % self._capacity), tf.int64)
        # Two steps may be here at once, if one of them was given up. Rather no step than a row of two ids.
        all_free = tf.debugging.assert_equal(
            tf.gather(self._used, old), tf.fill(tf.shape(old), FREE), message="a place for a row was given out twice"
        )
        with tf.control_dependencies([all_free]):
            return tf.concat([old, self._take_new(number - again)], 0)

    def _take_new(self, number: Any) -> Any:
        # In one operation: a step that was given up may leave TensorFlow's mutex open.
        end = tf.identity(tf.assign_add(self.count, number, use_locking=True))
        fits = tf.debugging.assert_less_equal(end, self._capacity, message=self._full)
        with tf.control_dependencies([fits]):
            return tf.range(end - number, end)

    def give_back(self, places: Any) -> Any:
        """Make the operation that lets new rows have these places, int64 [n], that no id has any more."""
        size = tf.size(places, out_type=tf.int64)
        marked = tf.scatter_update(self._used, places, tf.fill([size], FREE))
        end = self._given.read_value() + size
        with tf.control_dependencies([marked]):
            ring = tf.scatter_update(self._ring, tf.range(end - size, end) % self._capacity, tf.cast(places, tf.int32))
        with tf.control_dependencies([ring]):
            return tf.assign(self._given, end).op
