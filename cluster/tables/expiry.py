"""Rows whose ids have not come for long: when they expire, and which rows an update looks through for them.

A row counts as expired from the update on at which its table's limit is passed, in every lookup. To look through the
rows only frees their memory. Each update looks through a few, so that a round takes a quarter of the shortest limit.
"""

from typing import Any, Sequence

from cluster.runtime.tf_compat import tf

_LEAST = 256  # rows that an update looks through


class Expiry:
    """The limits of the tables of one store, in updates; 0 for never."""

    def __init__(self, limits: Sequence[int]):
        self._limits = list(limits)
        self.happens = any(self._limits)

    def expired(self, tables: Any, used: Any, update: Any) -> Any:
        """Return which rows [n] have expired by an update, as bools: of tables [n], changed last by updates [n]."""
        limits = tf.gather(tf.constant(self._limits, tf.int64), tables)
        return (limits > 0) & (update - tf.cast(used, tf.int64) > limits)

    def next_places(self, count: Any, update: Any) -> Any:
        """Return the places of ``count`` that an update looks through, int64 [n]."""
        number = _LEAST + 4 * count // min(each for each in self._limits if each)
        return (update * number + tf.range(tf.minimum(number, count))) % tf.maximum(count, 1)
