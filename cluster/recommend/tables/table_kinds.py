"""Kinds of tables: the tables of one width that share a part of the optimizer, with one store on each server.

One lookup in a training step:

    worker   makes one key for each distinct id, for its server    -> keys go to the servers
    ps       finds their rows; a new id has its first value        -> rows come back
    worker   the model's own gather takes the rows of its ids from these
    worker   computes gradients, and marks the keys that have one  -> with all other gradients, to the servers
    ps       gives new ids their rows, and updates all of them
"""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.recommend.tables.held_rows import number_type
from cluster.recommend.tables.lookahead import Lookahead
from cluster.recommend.tables.lookups import Lookup, Table
from cluster.recommend.tables.row_keys import Summed, chosen, distinct, runs, summed, summed_by_key
from cluster.recommend.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.recommend.tables.store import Store
from cluster.runtime.devices import ps_device
from cluster.runtime.gradients import MergedRows
from cluster.runtime.server_state import MOST_ROWS
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import SCOPE
from cluster.variables.wire_format import Wire


class Travel(NamedTuple):
    """The rules by which rows and their gradients are sent between workers and servers.

    ``waits``: whether every step ends before another step begins. Otherwise, updates of other workers may come between
    a lookup and the update with its gradient. ``ahead``: the number of updates that always come between the two, from
    ``train.table_staleness``. ``wire``: the format in which rows are sent to a worker.
    """

    waits: bool
    ahead: int
    wire: Wire


class Found(NamedTuple):
    """The answer to some lookups in the stores of one kind.

    ``keys`` is int64 [n], ascending, each key once. ``rows`` is [n, width]. ``places`` has a tensor for each lookup:
    for every id, the index of its row in ``rows``. ``asked`` has the (keys, numbers of their tables) that each server
    received, and ``taken`` the rows of each server before they are sent; both are in the servers' memory.
    """

    keys: Any
    rows: Any
    places: List[Any]
    asked: List[Tuple[Any, Any]]
    taken: List[Any]


class Kind:
    """The stores of one kind of tables, which all have the same width and the same part of the optimizer.

    Args:
      part: the prefix that names this part of the optimizer; "" for an optimizer without parts.
      tables: the tables of this kind, in the order of their numbers.
      optimizer: the optimizer for this part.
      servers: the number of parameter servers.
      kinds: the number of kinds, which share the servers' memory.
      travel: the rules by which rows travel.

    Attributes:
      name: the name of this kind, also in checkpoints.
      stores: one store on each server, in the order of the servers.
    """

    def __init__(self, part: str, tables: Sequence[Table], optimizer: Any, servers: int, kinds: int, travel: Travel):
        width = tables[0].width
        self.part, self.tables, self._travel = part, list(tables), travel
        self.name = f"embeddings_{part}_{width}" if part else f"embeddings_{width}"
        name, slots = f"{SCOPE}/{self.name}", slots_of(optimizer)
        self.stores = [
            Store(f"{name}/part_{index}", ps_device(index), tables, slots, kinds, waits=travel.waits, servers=servers)
            for index in range(servers)
        ]
        # Of the lookups of a training step: their keys, and for each server what it was asked for, and rows taken.
        self._keys: List[Any] = []
        self._asked: List[List[Tuple[Any, Any]]] = [[] for _ in range(servers)]
        self._taken: List[List[Any]] = [[] for _ in range(servers)]

    def optimizer(self, part: Any) -> RowOptimizer:
        """Return an optimizer that updates rows by the rule of ``part``, the optimizer for this kind of table."""
        asked = {} if self._travel.waits else {each.rows.op.name: of for each, of in zip(self.stores, self._asked)}
        return RowOptimizer(rule_of(part), self.stores, asked)

    # -- lookups

    def find_to_train(self, lookups: Sequence[Lookup], lookahead: Optional[Lookahead]) -> Tuple[Found, Any]:
        """Look up the ids of a training step; with ``lookahead``, the lookups run in an earlier step.

        Returns:
          The rows for the training step, and the number that gradients add to the places of these rows; None for 0.
        """
        ids = [each.ids for each in lookups]
        found = self.find(lookups, lookahead.of_newest(ids) if lookahead else ids, True)
        for of_store, taken in zip(self._taken, found.taken):
            of_store.append(taken)
        found = self._delay(found, lookahead) if lookahead else found
        first = tf.add_n([tf.size(each, out_type=tf.int64) for each in self._keys]) if self._keys else None
        self._keys.append(found.keys)
        for asked, pair in zip(self._asked, found.asked):
            asked.append(pair)
        return found, first

    def _delay(self, found: Found, lookahead: Lookahead) -> Found:
        """Return what earlier lookups found; what the servers were asked for waits there, and does not travel again."""
        asked = [lookahead.delay_there(pair, store.device) for store, pair in zip(self.stores, found.asked)]
        keys, rows, places = lookahead.delay((found.keys, found.rows, found.places))
        return Found(keys, rows, places, asked, [])

    def find(self, lookups: Sequence[Lookup], ids: Sequence[Any], training: bool) -> Found:
        """Look up ``ids``, one tensor for each of ``lookups``, with one request to each server.

        Args:
          training: whether gradients follow, which may give ids their rows.
        """
        keys, tables, places = distinct(ids, [each.table for each in lookups], self.tables)
        numbers = tf.cast(tables, number_type(self.tables))
        parts = zip(*_by_server(keys, [keys, numbers], len(self.stores)))
        asked = [store.receive(*part) for store, part in zip(self.stores, parts)]
        taken = [store.find(*pair, training) for store, pair in zip(self.stores, asked)]
        rows = [self._fetch(store, each) for store, each in zip(self.stores, taken)]
        return Found(keys, tf.concat(rows, 0), places, asked, taken)

    def _fetch(self, store: Store, taken: Any) -> Any:
        with tf.device(store.device):
            sent = self._travel.wire.narrow(taken)
        return self._travel.wire.widen(sent)

    # -- gradients

    def pairs(self, grads: Mapping[str, Any]) -> List[Tuple[Any, Any]]:
        """Return a pair (gradient, rows variable) for each store; no pairs if no table of this kind has a gradient.

        Args:
          grads: the gradients of tables as ``tf.IndexedSlices``, by the names of the tables.
        """
        own = [grads[table.name] for table in self.tables if grads.get(table.name) is not None]
        return self._split(self._summed(own)) if own else []

    def _summed(self, grads: Sequence[Any]) -> Summed:
        return summed(self._keys[0], grads) if len(self._keys) == 1 else summed_by_key(tf.concat(self._keys, 0), grads)

    def _split(self, found: Summed) -> List[Tuple[Any, Any]]:
        grad, servers = found.grad, len(self.stores)
        shape = tf.constant([MOST_ROWS, self.tables[0].width], tf.int64)
        values, keys = _by_server(grad.indices, [grad.values, grad.indices], servers)
        masks: List[Any] = [None] * servers
        if found.has_grad is not None:
            (masks,) = _by_server(self._keys[0], [found.has_grad], servers)
        there = [self._keys_there(*each) for each in zip(range(servers), keys, masks)]
        return [(MergedRows(value, key, shape), each.rows) for value, key, each in zip(values, there, self.stores)]

    def _keys_there(self, server: int, keys: Any, mask: Any) -> Any:
        """Return the keys of a gradient in its server's memory, available after the step has taken its rows there.

        So no gradient changes rows before. With ``mask`` the server chooses the keys from those that it was asked for:
        a byte travels for each, and not the key once more. Updates that came since the lookup may have made the server
        forget ids without a row, which are noted once more.
        """
        store, asked = self.stores[server], self._asked[server]
        noted = [store.note(*pair) for pair in asked] if self._travel.ahead else []
        with tf.device(store.device), tf.control_dependencies([*self._taken[server], *noted]):
            return tf.identity(keys) if mask is None else chosen(asked[0][0], mask)


def _by_server(keys: Any, columns: Sequence[Any], servers: int) -> List[List[Any]]:
    """Return columns of ascending keys, each as one part for each server."""
    if servers == 1:
        return [[tf.identity(each)] for each in columns]
    sizes = runs(keys, servers)
    return [tf.split(each, sizes, num=servers) for each in columns]
