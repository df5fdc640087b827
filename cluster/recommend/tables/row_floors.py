"""Tables whose oldest rows go many at once: of a table with too many rows, or after a time without use.

A table's *floor* is the number of the update before which its rows are too old. An update that raises the floor removes
all rows below it. So a reader of a checkpoint knows from the floor alone which rows of earlier parts have gone.
"""

from typing import Any, Dict, List, Sequence

import numpy as np

from cluster.recommend.tables.lookups import Table
from cluster.runtime.server_state import copied, declare, variable_of
from cluster.runtime.tf_compat import tf

_PART = 16  # of a bound goes at once
TICKS = 16  # in a table's limit of time
_PAUSE = 5  # ticks that are due together, of which one counts


class RowBound:
    """The bounds of the tables of one store, on the current device.

    An update that makes too many rows of a table lets a sixteenth of the bound go, or more.

    Args:
      name: the name of the store.
      tables: the tables, in the order of their numbers.
      servers: the number of servers, which share the bound of a table.

    Attributes:
      happens: whether any table has a bound.
    """

    def __init__(self, name: str, tables: Sequence[Table], servers: int):
        self._bounds = [-(-each.most // servers) for each in tables]
        self.happens = any(self._bounds)
        self.variables: List[Any] = []
        if self.happens:
            self._live = zeros(f"{name}/live", [len(tables)], tf.int64)
            self.variables = [self._live]

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

    def floor(self, table: Any, used: Any, update: Any) -> Any:
        """Return the floor of ``table``, int64, with which about fifteen sixteenths of its bound stay.

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
        return tf.minimum(tf.where(is_above, last + 1, last), update)


class RowAges:
    """The rows of the tables of one store that expire by time, on the current device.

    Sixteen *ticks* are a table's limit, and a table has the number of the update at each of its last sixteen ticks. At
    a tick its floor becomes the oldest of these. So a row goes after its limit, within another sixteenth. Only this
    server's clock counts. An update makes one tick: after a pause, several updates make those that are due. Once five
    are due together, one counts, as after a long pause or a jump of the clock.

    Args:
      name: the name of the store.
      tables: the tables, in the order of their numbers.

    Attributes:
      happens: whether the rows of any table expire by time.
      seconds: for each table, its limit, float64 [tables]; 0 for never.
    """

    def __init__(self, name: str, tables: Sequence[Table]):
        self.seconds = np.array([each.seconds for each in tables])
        self.happens = bool(self.seconds.any())
        self.variables: List[Any] = []
        if self.happens:
            self._ticks = zeros(f"{name}/ticks", [len(tables), TICKS], tf.int64)  # the oldest first
            self._ticked = zeros(f"{name}/ticked", [len(tables)], tf.float64)  # when the last was due
            self.variables = [self._ticks, self._ticked]

    def due(self) -> Any:
        """Return for which tables a tick is due, bool [tables]."""
        since = tf.abs(now() - self._ticked.read_value())  # a clock may go back
        return (self.seconds > 0) & (since >= self.seconds / TICKS)

    def tick(self, due: Any, update: Any) -> Any:
        """Return the floors of the tables that are ``due``, int64 [tables], 0 of others, in an update of this number.

        For these tables, a tick is noted.
        """
        ticks, ticked, time = copied(self._ticks), copied(self._ticked), now()
        tick = self.seconds / TICKS
        next_due = ticked + tick
        is_late = (time < next_due) | (time >= ticked + _PAUSE * tick)
        at = tf.where(is_late, time + tf.zeros_like(ticked), next_due)
        shifted = tf.concat([ticks[:, 1:], tf.fill([len(self.seconds), 1], update)], 1)
        with tf.control_dependencies([ticks, ticked]):
            pairs = [(self._ticks, tf.where(due, shifted, ticks)), (self._ticked, tf.where(due, at, ticked))]
            written = [tf.assign(*each).op for each in pairs]
        with tf.control_dependencies(written):
            return tf.where(due, ticks[:, 0], tf.zeros_like(ticks[:, 0]))

    def saved(self) -> Dict[str, Any]:
        """Return what a checkpoint has: limits, ticks, and how long the last tick of each table is ago, in seconds."""
        ages = now() - self._ticked.read_value()
        return {"seconds": tf.constant(self.seconds), "ticks": copied(self._ticks), "ages": tf.identity(ages)}

    def load(self, ticks: Any, ages: Any) -> Any:
        """Make the operation that goes on with ``ticks`` and ``ages``, as ``saved`` returned them."""
        return tf.group(tf.assign(self._ticks, ticks), tf.assign(self._ticked, now() - ages))


def now() -> Any:
    """Return the time by the clock of the current device's host, in seconds since 1970, float64."""
    return tf.timestamp()


def zeros(name: str, shape: Sequence[int], dtype: Any) -> Any:
    """Return a variable of zeros on the current device; no checkpoint has it by this name."""
    held = declare(name, tuple(shape), dtype)
    return variable_of(held, tf.assign(held, tf.zeros(shape, dtype)).op)
