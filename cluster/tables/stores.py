"""The tables of a model on all servers: one store on each, for all tables of one width that share an optimizer.

One lookup in a training step:

    worker   every id once, as a key, sorted out by server         -> keys go to the servers
    ps       finds their rows; a new id has its first value        -> rows come back
    worker   the model's own gather takes from these what it asked for
    worker   gradients of these rows, by keys                      -> with all other gradients, to the servers
    ps       gives new ids their rows, and updates all of them

All lookups that do not wait for one another are one request to each server. The model is built on variables that never
get a value (``cluster.embedding``). TensorFlow's own gradients of these name the rows by their keys.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

from cluster.embedding import Lookup, Table
from cluster.runtime.declared import MOST
from cluster.runtime.devices import ps_device
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.tables.keys import mix, owners, salt
from cluster.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.tables.store import Store
from cluster.updates.grouped import Grouped
from cluster.variables.masters import SCOPE
from cluster.variables.uses import ancestors


class Kind(NamedTuple):
    """The traits that the tables of one store share: the optimizer's part, by its prefix, and the width of a row."""

    part: str
    width: int

    @property
    def name(self) -> str:
        """Return the name of the store."""
        return f"embeddings_{self.part}_{self.width}" if self.part else f"embeddings_{self.width}"


class Stores:
    """Make the stores of a model, and let its lookups use them.

    Args:
      lookups: of the graph.
      trained: names of the tables that have a gradient.
      optimizer: the author's.
      servers: number of parameter servers.

    ``trained`` are the tables that have a gradient, in the order of their names.

    Raises:
      JobError: the optimizer has no rule for rows.
    """

    def __init__(self, lookups: Sequence[Lookup], trained: Sequence[str], optimizer: Any, servers: int):
        self._lookups, self._servers = list(lookups), servers
        self._trained_lookups: List[Lookup] = []
        self._asked: Dict[str, List[Tuple[Any, Any]]] = {}  # of training, by the name of a store's rows
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
            Store(f"{name}/part_{index}", ps_device(index), self._tables[kind], slots, len(self._tables))
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

    def optimizer(self, others: Any, waits: bool) -> Grouped:
        """Return the optimizer that updates rows by their rules, and all else by ``others``.

        Args:
          waits: whether a step ends before another begins. Else other workers' updates may come between.
        """
        parts = dict(others.parts) if isinstance(others, Grouped) else {"": others}
        asked = {} if waits else self._asked
        rows = {kind.name: RowOptimizer(rule_of(parts[kind.part]), of, asked) for kind, of in self._stores.items()}
        return Grouped({**parts, **rows})

    def describe(self) -> List[Dict[str, Any]]:
        """Return for each table the ids of a training step and the bytes that come for them, if all are distinct."""
        found: Dict[str, Dict[str, Any]] = {}
        for each in self._trained_lookups:
            ids, size = each.ids.shape.num_elements() or 0, 4 * each.table.width + 8
            of_table = found.setdefault(each.table.name, {"rows_per_step": 0, "bytes_per_step": 0})
            of_table["rows_per_step"] += ids
            of_table["bytes_per_step"] += ids * size
        return [{"name": name, "rows": None, "bytes": None, **found[name]} for name in sorted(found)]

    # -- lookups

    def move(self, step: Set[Any], host: str) -> Dict[Kind, List[Any]]:
        """Let the graph's lookups take rows from the stores.

        Args:
          step: the operations of a training step, whose gradients give new ids their rows.
          host: the device of the worker's memory.

        Returns:
          For each kind, the rows that a training step looks up.
        """
        looked_up: Dict[Kind, List[Any]] = {}
        for level in self._levels():
            for training in (True, False):
                for kind in self._stores:
                    chosen = [
                        each
                        for each in level
                        if self._kinds[each.table.name] == kind and (each.rows in step) == training
                    ]
                    if chosen:
                        self._trained_lookups += chosen if training else []
                        with tf.control_dependencies(None), tf.device(host):
                            rows = self._look_up(kind, chosen, training)
                        looked_up.setdefault(kind, []).extend([rows] if training else [])
        return looked_up

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

    def _look_up(self, kind: Kind, lookups: Sequence[Lookup], training: bool) -> Any:
        """Look up all ids of some lookups at once; return the rows that came."""
        distinct, places, start = [], {}, tf.constant(0, tf.int64)
        tables = self._tables[kind]
        numbers: List[Any] = []
        for table in tables:
            of_table = [each for each in lookups if each.table == table]
            if not of_table:
                continue
            keys, where = tf.unique(mix(_joined(of_table) + salt(table.name)), out_idx=tf.int64)
            for each, part in zip(of_table, tf.split(where + start, [tf.size(each.ids) for each in of_table])):
                places[id(each)] = part
            distinct.append(keys)
            numbers.append(tf.fill(tf.shape(keys), tf.constant(tables.index(table), tf.int32)))
            start += tf.size(keys, out_type=tf.int64)
        keys = tf.concat(distinct, 0)
        rows = self._ask(kind, keys, tf.concat(numbers, 0), training)
        for each in lookups:
            _take_from(each, rows, keys, places[id(each)])
        return rows

    def _ask(self, kind: Kind, keys: Any, tables: Any, training: bool) -> Any:
        """Return the rows of distinct keys, [n, width]."""
        stores = self._stores[kind]
        if len(stores) == 1:
            return tf.identity(self._find(stores[0], keys, tables, training))
        owner = owners(keys, len(stores))
        wanted = [tf.dynamic_partition(each, owner, len(stores)) for each in (keys, tables)]
        places = tf.dynamic_partition(tf.range(tf.size(keys)), owner, len(stores))
        rows = [self._find(store, keys, tables, training) for store, keys, tables in zip(stores, *wanted)]
        return tf.dynamic_stitch(places, rows)

    def _find(self, store: Store, keys: Any, tables: Any, training: bool) -> Any:
        if training:
            self._asked.setdefault(store.rows.op.name, []).append((keys, tables))
        return store.find(keys, tables, training)

    # -- gradients

    def pairs(self, grads: Mapping[str, Any], looked_up: Mapping[Kind, Sequence[Any]]) -> List[Tuple[Any, Any]]:
        """Return (gradient, rows variable) of each store.

        Args:
          grads: of the tables, by name, as ``tf.IndexedSlices``.
          looked_up: as ``move`` returned it: gradients must not change rows before they were taken.
        """
        found: List[Tuple[Any, Any]] = []
        for kind, tables in self._tables.items():
            of_kind = [grads[table.name] for table in tables if grads.get(table.name) is not None]
            if of_kind:
                with tf.control_dependencies(looked_up.get(kind, [])):
                    found += self._split(kind, _merged(of_kind))
        return found

    def _split(self, kind: Kind, grad: Any) -> List[Tuple[Any, Any]]:
        stores = self._stores[kind]
        shape = tf.constant([MOST, kind.width], tf.int64)
        owner = owners(grad.indices, len(stores))
        values, keys = (tf.dynamic_partition(each, owner, len(stores)) for each in (grad.values, grad.indices))
        return [(tf.IndexedSlices(value, key, shape), each.rows) for value, key, each in zip(values, keys, stores)]


def _part(name: str, parts: Mapping[str, Any]) -> str:
    return Grouped(parts).prefix(name)


def _joined(lookups: Sequence[Lookup]) -> Any:
    return lookups[0].ids if len(lookups) == 1 else tf.concat([each.ids for each in lookups], 0)


def _take_from(lookup: Lookup, rows: Any, keys: Any, places: Any) -> None:
    """Let a lookup's gather take its rows from those that came, and its gradient name the rows by their keys."""
    width = lookup.table.width
    # The rows' number is not that of the table: TensorFlow takes no input of another known shape.
    some = tf.placeholder_with_default(rows, [None, width])
    mine = tf.gather(keys, places)
    mine.set_shape(lookup.ids.shape)
    places.set_shape(lookup.ids.shape)
    lookup.rows._update_input(0, some)
    lookup.rows._update_input(1, places)
    lookup.numbers.op._update_input(0, mine)


def _merged(grads: Sequence[Any]) -> Any:
    """Return one gradient of several, each row once."""
    values = tf.concat([grad.values for grad in grads], 0)
    indices = tf.concat([grad.indices for grad in grads], 0)
    return merge_rows(tf.IndexedSlices(values, indices))
