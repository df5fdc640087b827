"""Tables with at most so many rows on a server: rows that were not used for the longest time go, many at once.

An update that makes too many rows of a table lets a sixteenth of the bound go, or more. It finds the number of the
update before which rows are too old, the table's *floor*, and removes all rows of the table that are older. So a reader
of a checkpoint knows from the floor alone which rows of earlier parts have gone.
"""

from typing import Any, List, Sequence

from cluster.recommend.tables.lookups import Table
from cluster.runtime.server_state import declare, variable_of
from cluster.runtime.tf_compat import tf

_PART = 16  # of the bound goes at once


class RowBound:
    """The bounds of the tables of one store, on the current device.

    Args:
      name: the name of the store.
      tables: the tables, in the order of their numbers.
      servers: the number of servers, which share the bound of a table.

    Attributes:
      happens: whether any table has a bound.
      floors: the number of the oldest update whose rows each table still has, int64 [tables]; there only with bounds.
    """

    def __init__(self, name: str, tables: Sequence[Table], servers: int):
        self._bounds = [-(-each.most // servers) for each in tables]
        self.happens = any(self._bounds)
        self.variables: List[Any] = []
        if self.happens:
            self._live, self.floors = (_zeros(f"{name}/{each}", len(tables)) for each in ("live", "floors"))
            self.variables = [self._live, self.floors]

    def count(self, tables: Any) -> List[Any]:
        """Make the operation that counts new rows of ``tables`` [n]; none without bounds.

        Rows of a table with a bound go only above the bound, and ``recount`` counts those that stay.
        """
        if not self.happens:
            return []
        ones = tf.ones_like(tables, tf.int64)
        return [tf.scatter_add(self._live, tf.cast(tables, tf.int32), ones, use_locking=True).op]

    def recount(self, table: Any, rows: Any) -> Any:
        """Make the operation that notes how many ``rows`` a table has: a step that was given up may have miscounted."""
        return tf.scatter_update(self._live, tf.expand_dims(table, 0), tf.expand_dims(rows, 0)).op

    def fullest(self) -> Any:
        """Return the table with the most rows above its bound, and whether it has any, as int64 and bool scalars."""
        bounds = tf.constant(self._bounds, tf.int64)
        above = tf.where(bounds > 0, self._live.read_value() - bounds, -tf.ones_like(bounds))
        table = tf.argmax(above)
        return table, tf.gather(above, table) > 0

    def raise_floor(self, table: Any, used: Any, update: Any) -> Any:
        """Return the new floor of ``table``, int64, so that about fifteen sixteenths of its bound stay.

        Rows whose last update is the same stay together where the bound allows it, and otherwise go together. Rows of
        the current update always stay.

        Args:
          used: the number of the last update of each of the table's rows, [n].
          update: the number of the current update, int64.
        """
        size = tf.size(used)
        bound = tf.minimum(tf.gather(tf.constant(self._bounds, tf.int32), table), size)
        newest = tf.cast(tf.math.top_k(used, tf.minimum(bound + 1, size)).values, tf.int64)
        last, above = newest[bound - bound // _PART - 1], newest[-1]
        is_above = tf.equal(last, above) & (bound < size)
        floor = tf.minimum(tf.where(is_above, last + 1, last), update)
        written = tf.scatter_update(self.floors, tf.expand_dims(table, 0), tf.expand_dims(floor, 0))
        with tf.control_dependencies([written]):
            return tf.identity(floor)


def _zeros(name: str, length: int) -> Any:
    held = declare(name, (length,), tf.int64)
    return variable_of(held, tf.assign(held, tf.zeros([length], tf.int64)).op)
