"""Tables that answer and never change: the rows of a checkpoint, in the memory of one process.

A table is a sorted list of ids, the place of each id's row, and the rows. A lookup searches for its ids in the list,
by plain operations of TensorFlow. So a graph with such tables needs nothing of this project, and no server.
"""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence

import numpy as np

from cluster.embedding import Table
from cluster.runtime.tf_compat import tf
from cluster.tables.initializers import first_values
from cluster.tables.row_keys import mix, salt

PIECE_BYTES = 1 << 30  # of rows in one variable: TensorFlow copies no tensor of 2 GiB from process to process
_LAST = np.iinfo(np.int64).max  # ends the list, so that an id is at or after any other


class FrozenTable:
    """One table on the current device, without rows until ``load``.

    Args:
      pieces: how many variables hold the rows.

    ``size`` is the number of rows that ``load`` has given.
    """

    def __init__(self, table: Table, pieces: int = 1):
        self.table, self.size = table, 0
        with tf.name_scope(None), tf.control_dependencies(None):
            self._ids = _variable(f"{table.name}/ids", np.array([_LAST]))
            self._places = _variable(f"{table.name}/places", np.array([-1]))
            nothing = np.zeros([0, table.width], np.float32)
            self._rows = [_variable(f"{table.name}/rows_{index}", nothing) for index in range(pieces)]

    @property
    def variables(self) -> List[Any]:
        """Return all variables, which are in no collection of TensorFlow's."""
        return [self._ids, self._places, *self._rows]

    def look_up(self, ids: Any) -> Any:
        """Return the rows of ids [n], float32 [n, width]; of an id without a row, its first value."""
        sorted_ids = self._ids.read_value()
        at = tf.raw_ops.LowerBound(sorted_inputs=sorted_ids[tf.newaxis], values=ids[tf.newaxis], out_type=tf.int64)[0]
        places = tf.gather(self._places, at)
        has_row = tf.equal(tf.gather(sorted_ids, at), ids) & (places >= 0)
        known, unknown = (tf.reshape(tf.where(each), [-1]) for each in (has_row, tf.logical_not(has_row)))
        values = [self._take(tf.gather(places, known)), self._first(tf.gather(ids, unknown))]
        found = tf.dynamic_stitch([tf.cast(each, tf.int32) for each in (known, unknown)], values)
        return tf.reshape(found, [tf.size(ids), self.table.width])

    def _first(self, ids: Any) -> Any:
        return first_values([self.table], mix(ids + salt(self.table.name)), tf.zeros_like(ids, tf.int32))

    def _take(self, places: Any) -> Any:
        if len(self._rows) == 1:
            return tf.gather(self._rows[0], places)
        of_a_piece = tf.maximum(tf.shape(self._rows[0], out_type=tf.int64)[0], 1)
        owner = tf.cast(places // of_a_piece, tf.int32)
        asked = tf.dynamic_partition(places % of_a_piece, owner, len(self._rows))
        back = tf.dynamic_partition(tf.range(tf.size(places)), owner, len(self._rows))
        return tf.dynamic_stitch(back, [tf.gather(rows, some) for rows, some in zip(self._rows, asked)])

    def load(self, session: Any, ids: np.ndarray, rows: Iterable[np.ndarray]) -> None:
        """Give the table other rows.

        Args:
          ids: int64 [n], each once.
          rows: float32 [some, width] each, n together, in the order of ``ids``.
        """
        self.size, order = len(ids), np.argsort(ids, kind="stable")
        _give(session, self._ids, np.append(ids[order], _LAST))
        _give(session, self._places, np.append(order, -1))
        size = -(-len(ids) // len(self._rows))
        sizes = [max(0, min(size, len(ids) - index * size)) for index in range(len(self._rows))]
        for variable, piece in zip(self._rows, joined(rows, sizes, self.table.width)):
            _give(session, variable, piece)


class FrozenTables:
    """The tables that lookups ask for, in the order of asking; ``look_up`` is for ``embedding.rows_from``.

    Args:
      pieces: returns how many variables the rows of a table take.
    """

    def __init__(self, device: str, pieces: Callable[[Table], int] = lambda table: 1):
        self._device, self._pieces = device, pieces
        self.all: Dict[str, FrozenTable] = {}

    def look_up(self, table: Table, ids: Any) -> Any:
        """Return the rows of ids [n], [n, width]."""
        with tf.device(self._device):
            if table.name not in self.all:
                self.all[table.name] = FrozenTable(table, self._pieces(table))
            return self.all[table.name].look_up(ids)


def joined(parts: Iterable[np.ndarray], sizes: Sequence[int], width: int) -> Iterator[np.ndarray]:
    """Yield the rows of all parts, in order, as arrays of these sizes; one of them is in memory at a time."""
    source, rest = iter(parts), np.zeros([0, width], np.float32)
    for size in sizes:
        piece, filled = np.empty([size, width], np.float32), 0
        while filled < size:
            rest = rest if len(rest) else next(source)
            taken = rest[: size - filled]
            piece[filled : filled + len(taken)] = taken
            filled, rest = filled + len(taken), rest[len(taken) :]
        yield piece


def _variable(name: str, first: np.ndarray) -> Any:
    """Make a resource of which the first dimension may change."""
    shape = [None, *first.shape[1:]]
    value = tf.placeholder_with_default(first, shape)
    return tf.Variable(
        value, trainable=False, collections=[], name=name, use_resource=True, shape=tf.TensorShape(shape)
    )


def _give(session: Any, variable: Any, value: np.ndarray) -> None:
    session.run(variable.initializer, {variable.initializer.inputs[1]: value})
