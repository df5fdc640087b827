"""The tables of a model on all servers: one store on each, for all tables of one width that share an optimizer.

One lookup in a training step:

    worker   every id once, as a key, sorted out by server         -> keys go to the servers
    ps       finds their rows; a new id has its first value        -> rows come back
    worker   the model's own gather takes from these what it asked for
    worker   gradients of these rows, and which keys have one      -> with all other gradients, to the servers
    ps       gives new ids their rows, and updates all of them

All lookups that do not wait for one another are one request to each server. The model is built on variables that never
get a value (``cluster.embedding``). TensorFlow's own gradients of these name rows by their places among the keys.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from cluster.embedding import Lookup, Table
from cluster.runtime.devices import ps_device
from cluster.runtime.gradients import MergedRows
from cluster.runtime.server_state import MOST_ROWS
from cluster.runtime.tf_compat import tf
from cluster.tables.lookahead import Lookahead
from cluster.tables.row_keys import Summed, chosen, distinct, runs, summed, summed_by_key
from cluster.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.tables.store import Store, number_type
from cluster.updates.grouped import Grouped
from cluster.variables.masters import SCOPE
from cluster.variables.uses import ancestors
from cluster.variables.wire_format import Wire


class Kind(NamedTuple):
    """The traits that the tables of one store share: the optimizer's part, by its prefix, and the width of a row."""

    part: str
    width: int

    @property
    def name(self) -> str:
        """Return the name of the store."""
        return f"embeddings_{self.part}_{self.width}" if self.part else f"embeddings_{self.width}"


class Found(NamedTuple):
    """The answer to some lookups in the stores of one kind.

    ``keys`` is int64 [n], each once and ascending, ``rows`` [n, width]; ``places`` has for each lookup where its ids'
    rows are among these. Each server keeps ``asked``, (keys, numbers of their tables), and ``taken``, the rows before
    they travel.
    """

    keys: Any
    rows: Any
    places: List[Any]
    asked: List[Tuple[Any, Any]]
    taken: List[Any]


class Stores:
    """Make the stores of a model, and let its lookups use them.

    Args:
      lookups: of the graph.
      trained: names of the tables that have a gradient.
      optimizer: the author's.
      servers: number of parameter servers.
      waits: whether a step ends before another begins. Else other workers' updates may come between a lookup and its
        own.
      ahead: how many updates come between a lookup and its own in any case.
      wire: the format in which rows travel to a worker.

    ``trained`` are the tables that have a gradient, in the order of their names.

    Raises:
      JobError: the optimizer has no rule for rows.
    """

    def __init__(
        self,
        lookups: Sequence[Lookup],
        trained: Sequence[str],
        optimizer: Any,
        servers: int,
        waits: bool,
        ahead: int = 0,
        wire: Optional[Wire] = None,
    ):
        self._lookups, self._servers, self._waits, self._ahead = list(lookups), servers, waits, ahead
        self._wire = wire or Wire()
        self._trained_lookups: List[Lookup] = []
        self._keys: Dict[Kind, List[Any]] = {}  # of a training step's lookups
        self._asked: Dict[str, List[Tuple[Any, Any]]] = {}  # the same on a server, by the name of its rows
        self._taken: Dict[str, List[Any]] = {}  # rows that the step takes, likewise
        parts = optimizer.parts if isinstance(optimizer, Grouped) else {"": optimizer}
        # Tables that only the chief's evaluation knows are the last: the others' numbers are those of every worker.
        tables = sorted({each.table for each in lookups}, key=lambda table: (table.name not in trained, table.name))
        self.trained = [table for table in tables if table.name in trained]
        self._kinds = {table.name: Kind(_part(table.name, parts), table.width) for table in tables}
        self._tables: Dict[Kind, List[Table]] = {}
        for table in tables:
            self._tables.setdefault(self._kinds[table.name], []).append(table)
        self._parts = {kind: parts[kind.part] for kind in self._tables}
        self._stores = {kind: self._make(kind) for kind in self._tables}

    def _make(self, kind: Kind) -> List[Store]:
        name, slots = f"{SCOPE}/{kind.name}", slots_of(self._parts[kind])
        return [
            Store(f"{name}/part_{index}", ps_device(index), self._tables[kind], slots, len(self._tables), self._waits)
            for index in range(self._servers)
        ]

    @property
    def all(self) -> List[Store]:
        """Return all stores, those of one kind in the order of their servers."""
        return [store for stores in self._stores.values() for store in stores]

    @property
    def by_kind(self) -> Dict[Kind, List[Store]]:
        """Return the stores of each kind, in the order of their servers."""
        return dict(self._stores)

    @property
    def variables(self) -> List[Any]:
        """Return the variables of all stores."""
        return [variable for store in self.all for variable in store.variables]

    def optimizer(self, others: Any) -> Grouped:
        """Return the optimizer that updates rows by their rules, and all else by ``others``."""
        parts = dict(others.parts) if isinstance(others, Grouped) else {"": others}
        asked = {} if self._waits else self._asked
        rows = {kind.name: RowOptimizer(rule_of(parts[kind.part]), of, asked) for kind, of in self._stores.items()}
        return Grouped({**parts, **rows})

    def describe(self) -> List[Dict[str, Any]]:
        """Return for each table the ids of a training step and the bytes that come for them, if all are distinct."""
        found: Dict[str, Dict[str, Any]] = {}
        for each in self._trained_lookups:
            ids, size = each.ids.shape.num_elements() or 0, self._wire.type.size * each.table.width + 8
            of_table = found.setdefault(each.table.name, {"rows_per_step": 0, "bytes_per_step": 0})
            of_table["rows_per_step"] += ids
            of_table["bytes_per_step"] += ids * size
        return [{"name": name, "rows": None, "bytes": None, **found[name]} for name in sorted(found)]

    @property
    def names(self) -> List[str]:
        """Return the names of all tables, in the order of the stores."""
        return [each.name for of_kind in self._tables.values() for each in of_kind]

    # -- lookups

    def move(self, step: Set[Any], host: str, lookahead: Optional[Lookahead] = None) -> None:
        """Let the graph's lookups take rows from the stores.

        Args:
          step: the operations of a training step, whose gradients give new ids their rows.
          host: the device of the worker's memory.
          lookahead: by which lookups of training run before their step.
        """
        unfed = [each.rows for each in self._lookups if _is_unfed(each)]
        for level in self._levels():
            for kind in self._stores:
                of_kind = [each for each in level if self._kinds[each.table.name] == kind]
                trained = [each for each in of_kind if each.rows in step]
                others = [each for each in of_kind if each.rows not in step]
                with tf.control_dependencies(None), tf.device(host):
                    if trained:
                        self._look_up_to_train(kind, trained, lookahead)
                    self._look_up(kind, [each for each in others if each.rows not in unfed])
                    self._look_up(kind, [each for each in others if each.rows in unfed])  # which nobody runs

    def _levels(self) -> List[List[Lookup]]:
        """Return the lookups in groups, of which each waits for none but those before."""
        waits = {index: ancestors([each.ids]) for index, each in enumerate(self._lookups)}
        levels: List[List[Lookup]] = []
        of: Dict[int, int] = {}
        for index, each in enumerate(self._lookups):
            before = [of[other] for other in of if self._lookups[other].rows in waits[index]]
            of[index] = max(before) + 1 if before else 0
            levels.extend([] for _ in range(of[index] + 1 - len(levels)))
            levels[of[index]].append(each)
        return levels

    def _look_up_to_train(self, kind: Kind, lookups: Sequence[Lookup], lookahead: Optional[Lookahead]) -> None:
        """Look up ids of a training step, or with ``lookahead`` of a later one."""
        self._trained_lookups += lookups
        ids = [each.ids for each in lookups]
        found = self._find_all(kind, lookups, lookahead.of_newest(ids) if lookahead else ids, True)
        for store, taken in zip(self._stores[kind], found.taken):
            self._taken.setdefault(store.rows.op.name, []).append(taken)
        found = self._delay(kind, found, lookahead) if lookahead else found
        before = self._keys.setdefault(kind, [])
        first = tf.add_n([tf.size(each, out_type=tf.int64) for each in before]) if before else None
        before.append(found.keys)
        for store, pair in zip(self._stores[kind], found.asked):
            self._asked.setdefault(store.rows.op.name, []).append(pair)
        _take_from(lookups, found, first)

    def _delay(self, kind: Kind, found: Found, lookahead: Lookahead) -> Found:
        """Return what earlier lookups found; what the servers were asked for waits there, and does not travel again."""
        stores = self._stores[kind]
        asked = [lookahead.delay_there(pair, store.device) for store, pair in zip(stores, found.asked)]
        keys, rows, places = lookahead.delay((found.keys, found.rows, found.places))
        return Found(keys, rows, places, asked, [])

    def _look_up(self, kind: Kind, lookups: Sequence[Lookup]) -> None:
        """Look up ids of no training step."""
        if lookups:
            _take_from(lookups, self._find_all(kind, lookups, [each.ids for each in lookups], False))

    def _find_all(self, kind: Kind, lookups: Sequence[Lookup], ids: Sequence[Any], training: bool) -> Found:
        """Look up all ids of some lookups at once."""
        keys, tables, places = distinct(ids, [each.table for each in lookups], self._tables[kind])
        stores, numbers = self._stores[kind], tf.cast(tables, number_type(self._tables[kind]))
        parts = zip(*_by_server(keys, [keys, numbers], len(stores)))
        asked = [store.receive(*part) for store, part in zip(stores, parts)]
        taken = [store.find(*pair, training) for store, pair in zip(stores, asked)]
        rows = [self._fetch(store, each) for store, each in zip(stores, taken)]
        return Found(keys, tf.concat(rows, 0), places, asked, taken)

    def _fetch(self, store: Store, taken: Any) -> Any:
        with tf.device(store.device):
            sent = self._wire.narrow(taken)
        return self._wire.widen(sent)

    # -- gradients

    def pairs(self, grads: Mapping[str, Any]) -> List[Tuple[Any, Any]]:
        """Return (gradient, rows variable) of each store.

        Args:
          grads: of the tables, by name, as ``tf.IndexedSlices``.
        """
        found: List[Tuple[Any, Any]] = []
        for kind, tables in self._tables.items():
            of_kind = [grads[table.name] for table in tables if grads.get(table.name) is not None]
            if of_kind:
                found += self._split(kind, self._summed(kind, of_kind))
        return found

    def _summed(self, kind: Kind, grads: Sequence[Any]) -> Summed:
        keys = self._keys[kind]
        return summed(keys[0], grads) if len(keys) == 1 else summed_by_key(tf.concat(keys, 0), grads)

    def _split(self, kind: Kind, found: Summed) -> List[Tuple[Any, Any]]:
        stores, grad = self._stores[kind], found.grad
        shape = tf.constant([MOST_ROWS, kind.width], tf.int64)
        values, keys = _by_server(grad.indices, [grad.values, grad.indices], len(stores))
        masks: List[Any] = [None] * len(stores)
        if found.has_grad is not None:
            (masks,) = _by_server(self._keys[kind][0], [found.has_grad], len(stores))
        there = [self._keys_there(*each) for each in zip(stores, keys, masks)]
        return [(MergedRows(value, key, shape), each.rows) for value, key, each in zip(values, there, stores)]

    def _keys_there(self, store: Store, keys: Any, mask: Any) -> Any:
        """Return the keys of a gradient in its server's memory, available after the step has taken its rows there.

        So no gradient changes rows before. With ``mask`` the server chooses the keys from those that it was asked for:
        a byte travels for each, and not the key once more. Updates that came since the lookup may have made the server
        forget ids without a row, which are noted once more.
        """
        asked = self._asked[store.rows.op.name]
        noted = [store.note(*pair) for pair in asked] if self._ahead else []
        with tf.device(store.device), tf.control_dependencies([*self._taken[store.rows.op.name], *noted]):
            return tf.identity(keys) if mask is None else chosen(asked[0][0], mask)


def _is_unfed(lookup: Lookup) -> bool:
    """Return whether ids need a ``tf.keras.Input``: building a functional model calls its layers once."""
    return any(op.type == "Placeholder" for op in ancestors([lookup.ids]))


def _by_server(keys: Any, columns: Sequence[Any], servers: int) -> List[List[Any]]:
    """Return columns of ascending keys, each as one part for each server."""
    if servers == 1:
        return [[tf.identity(each)] for each in columns]
    sizes = runs(keys, servers)
    return [tf.split(each, sizes, num=servers) for each in columns]


def _part(name: str, parts: Mapping[str, Any]) -> str:
    return Grouped(parts).prefix(name)


def _take_from(lookups: Sequence[Lookup], found: Found, first: Any = None) -> None:
    """Let each lookup have its rows of those that came, and its gradient name them by their places.

    Args:
      first: the place of the first of them in gradients; 0 if None.
    """
    of_device: Dict[str, List[Tuple[Lookup, Any]]] = {}
    for lookup, places in zip(lookups, found.places):
        places.set_shape(lookup.ids.shape)
        lookup.numbers.op._update_input(0, places if first is None else places + first)
        of_device.setdefault(lookup.rows.device, []).append((lookup, places))
    for device, pairs in of_device.items():
        with tf.device(device):
            # The rows' number is not that of the table: TensorFlow takes no input of another known shape.
            some = tf.placeholder_with_default(found.rows, [None, lookups[0].table.width])
            _take_together(some, pairs)


def _take_together(rows: Any, pairs: Sequence[Tuple[Lookup, Any]]) -> None:
    """Let lookups take rows, each by its places: all in one operation for what the model makes of them."""
    for lookup, places in pairs:
        lookup.rows._update_input(0, rows)  # for those who hold its tensor
        lookup.rows._update_input(1, places)
    if len(pairs) > 1:
        all_places = tf.concat([places for _, places in pairs], 0)
        parts = tf.split(tf.gather(rows, all_places), [tf.size(places) for _, places in pairs])
        for (lookup, _), part in zip(pairs, parts):
            _replace(lookup.rows.outputs[0], part)


def _replace(old: Any, new: Any) -> None:
    new.set_shape(old.shape)
    for op in old.consumers():
        for index, each in enumerate(op.inputs):
            if each is old:
                op._update_input(index, new)
