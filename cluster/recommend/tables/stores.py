"""The embedding tables of a model on all servers, and the lookups of its graph, which take rows from the servers.

Lookups that do not depend on one another share one request to each server. The model is built on variables that never
get a value (``lookups``). TensorFlow's own gradients of these variables refer to rows by their indices in the keys.
``table_kinds`` describes the messages of a step. ``ModelTables`` is the extension of the model's graph with the tables.
"""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from cluster.checkpoints.pieces_of_variables import Fed
from cluster.checkpoints.row_pieces import RowsOf
from cluster.checkpoints.warm_start import WarmRows
from cluster.model.model_graph import ModelGraph
from cluster.recommend.tables.loaded_rows import WarmTables
from cluster.recommend.tables.lookahead import Lookahead
from cluster.recommend.tables.lookups import Lookup, refuse, refuse_anywhere, refuse_staleness
from cluster.recommend.tables.lookups import lookups as lookups_of
from cluster.recommend.tables.saved_tables import SavedTables
from cluster.recommend.tables.store import Store
from cluster.recommend.tables.table_kinds import Found, Kind, Travel
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import Extension, Pairs
from cluster.updates.grouped import Grouped
from cluster.variables.uses import ancestors
from cluster.variables.wire_format import Wire


class Stores:
    """All stores of a model's embedding tables, which provide the rows for the lookups of its graph.

    Args:
      lookups: the lookups of the graph.
      trained: the names of the tables that have a gradient.
      optimizer: the author's optimizer.
      servers: the number of parameter servers.
      travel: the rules by which rows travel.

    Attributes:
      trained: the tables that have a gradient, in the order of their names.
      kinds: the kinds of tables, with their stores.

    Raises:
      JobError: the optimizer has no rule for rows.
    """

    def __init__(self, lookups: Sequence[Lookup], trained: Sequence[str], optimizer: Any, servers: int, travel: Travel):
        self._lookups, self._travel = list(lookups), travel
        self._trained_lookups: List[Lookup] = []
        parts = _parts(optimizer)
        # Tables that only the chief's evaluation knows are the last: the others' numbers are those of every worker.
        tables = sorted({each.table for each in lookups}, key=lambda table: (table.name not in trained, table.name))
        self.trained = [table for table in tables if table.name in trained]
        grouped: Dict[Tuple[str, int], List[Any]] = {}
        for table in tables:
            grouped.setdefault((Grouped(parts).prefix(table.name), table.width), []).append(table)
        self.kinds = [
            Kind(part, some, parts[part], servers, len(grouped), travel) for (part, _), some in grouped.items()
        ]

    @property
    def all(self) -> List[Store]:
        """Return all stores, ordered by kind, then by server."""
        return [store for kind in self.kinds for store in kind.stores]

    @property
    def variables(self) -> List[Any]:
        """Return the variables of all stores."""
        return [variable for store in self.all for variable in store.variables]

    @property
    def names(self) -> List[str]:
        """Return the names of all tables, in the order of the stores."""
        return [each.name for kind in self.kinds for each in kind.tables]

    def saved(self, fed: Fed) -> List[SavedTables]:
        """Return the ``SavedTables`` of each kind; call it on the device of the process that writes checkpoints."""
        return [SavedTables(kind.name, kind.stores, fed) for kind in self.kinds]

    def warm(self) -> WarmTables:
        """Return the object with which a warm start gives rows to the tables."""
        return WarmTables([kind.stores for kind in self.kinds])

    def optimizer(self, others: Any) -> Grouped:
        """Return an optimizer that updates rows by the rules for rows, and other variables by ``others``.

        The rules for rows also come from ``others``, the author's optimizer.
        """
        parts = _parts(others)
        return Grouped({**parts, **{kind.name: kind.optimizer(parts[kind.part]) for kind in self.kinds}})

    def pairs(self, grads: Mapping[str, Any]) -> List[Tuple[Any, Any]]:
        """Return a pair (gradient, rows variable) for each store; see ``Kind.pairs``."""
        return [pair for kind in self.kinds for pair in kind.pairs(grads)]

    def describe(self) -> List[Dict[str, Any]]:
        """Return, for each table of a training step, the number of rows that a worker looks up, and their bytes.

        Both numbers are those of a step whose ids are all different.
        """
        found: Dict[str, Dict[str, Any]] = {}
        for each in self._trained_lookups:
            ids, size = each.ids.shape.num_elements() or 0, self._travel.wire.type.size * each.table.width + 8
            of_table = found.setdefault(each.table.name, {"rows_per_step": 0, "bytes_per_step": 0})
            of_table["rows_per_step"] += ids
            of_table["bytes_per_step"] += ids * size
        return [{"name": name, "rows": None, "bytes": None, **found[name]} for name in sorted(found)]

    def move(self, step: Set[Any], host: str, lookahead: Optional[Lookahead] = None) -> None:
        """Make the lookups of the graph take their rows from the stores.

        Args:
          step: the operations of a training step, whose gradients give new ids their rows.
          host: the device of the worker's memory.
          lookahead: the queues for lookups that run before their training step; None if lookups run in their step.
        """
        unfed = [each.rows for each in self._lookups if _is_unfed(each)]
        for level in self._levels():
            for kind in self.kinds:
                of_kind = [each for each in level if each.table in kind.tables]
                trained = [each for each in of_kind if each.rows in step]
                others = [each for each in of_kind if each.rows not in step]
                with tf.control_dependencies(None), tf.device(host):
                    if trained:
                        self._trained_lookups += trained
                        _take_from(trained, *kind.find_to_train(trained, lookahead))
                    _look_up(kind, [each for each in others if each.rows not in unfed])
                    _look_up(kind, [each for each in others if each.rows in unfed])  # which nobody runs

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


def _parts(optimizer: Any) -> Dict[str, Any]:
    return dict(optimizer.parts) if isinstance(optimizer, Grouped) else {"": optimizer}


def _is_unfed(lookup: Lookup) -> bool:
    """Return whether ids need a ``tf.keras.Input``: building a functional model calls its layers once."""
    return any(op.type == "Placeholder" for op in ancestors([lookup.ids]))


def _look_up(kind: Kind, lookups: Sequence[Lookup]) -> None:
    """Look up ids of no training step."""
    if lookups:
        _take_from(lookups, kind.find(lookups, [each.ids for each in lookups], False))


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


class ModelTables(Extension):
    """The part of the model's graph for its embedding tables; ``claim`` creates ``stores``, which contain the rows."""

    answers = ("train.checkpoint.delta_every_s", "train.table_staleness")

    def __init__(self) -> None:
        super().__init__()
        self._lookups = lookups_of(tf.get_default_graph())
        self.stores: Any = None
        self._lookahead: Optional[Lookahead] = None

    def refuse(self, model: ModelGraph) -> None:
        """Refuse tables with ``train.sync: stock``, where TensorFlow's own class takes the steps. Raises JobError."""
        if model.train.sync == "stock":
            refuse_anywhere(self._lookups, model.job, "train.sync: stock")

    def claim(self, model: ModelGraph, grads: Dict[str, Any], is_elementwise: bool) -> None:
        """Remove the tables' variables from ``model``, and their gradients from ``grads``, and create the stores.

        Raises:
          JobError: a setting, or the model's use of the tables, makes their correct training impossible.
        """
        train, names = model.train, {each.table.name for each in self._lookups}
        refuse(self._lookups, model.job, train, is_elementwise)
        for name in names:
            del model.variables[name]
        self.grads = {name: grads.pop(name) for name in names if name in grads}
        waits = train.mode == "sync"
        travel = Travel(waits, train.table_staleness, Wire(train.wire if waits else "float32"))
        servers = len(model.task.cluster["ps"])
        self.stores = stores = Stores(self._lookups, list(self.grads), model.optimizer, servers, travel)
        for name in model.variables:
            ok = not any(f"{name}/".startswith(f"{kind.name}/") for kind in stores.kinds)
            model.job.check("model", "a name that is not reserved for rows of tables", f"the variable {name}", ok)

    def from_servers(self) -> List[Any]:
        """Return the lookups' operations that take rows; ``make`` connects them to the stores later."""
        return [each.rows for each in self._lookups]

    def make(self, model: ModelGraph, step: Any, host: str, global_step: Any) -> None:
        """Make lookups take rows from the stores.

        With ``train.table_staleness``, the lookups of training run before their step.

        Raises:
          JobError: ``train.table_staleness`` cannot be used with the model's lookups or dataset.
        """
        self._lookahead = self._make_lookahead(model, step, host)
        self.stores.move(step, host, self._lookahead)
        if self._lookahead is not None:
            self._lookahead.close()
            self.beside = self._lookahead.beside
        self.agreed = [each.rows for each in self.stores.all]
        self.needed, self.listed = self.stores.variables, self.stores.trained

    def _make_lookahead(self, model: ModelGraph, step: Any, host: str) -> Optional[Lookahead]:
        if not model.train.table_staleness:
            return None
        trained = [each for each in self._lookups if each.rows in step]
        refuse_staleness(trained, model.job, model.boundary, model.place is not None)
        return Lookahead(model.train.table_staleness, model.boundary, host, model.task.worker_index)

    def first_values(self) -> List[Any]:
        """Return the operations that initialise each store without rows."""
        return [each.first() for each in self.stores.all]

    def join(self, optimizer: Any, grads: Mapping[str, Any]) -> Tuple[Any, Pairs]:
        """Return ``optimizer`` with the rules for rows added, and a pair (gradient, rows variable) for each store."""
        return self.stores.optimizer(optimizer), self.stores.pairs(grads)

    def begin(self, session: Any) -> None:
        """Fill the queues of batches that wait for their step; only ``train.table_staleness`` has such queues."""
        if self._lookahead is not None:
            self._lookahead.begin(session)

    def saved_rows(self) -> Optional[RowsOf]:
        """Return the function that makes the operations that save the rows."""
        return self.stores.saved  # type: ignore[no-any-return]

    def warm_rows(self) -> Optional[WarmRows]:
        """Return the object with which a warm start gives rows to the tables."""
        return self.stores.warm()  # type: ignore[no-any-return]

    def described(self) -> List[Dict[str, Any]]:
        """Return, for each table, the number of rows that a worker looks up in a step, and their bytes."""
        return self.stores.describe()  # type: ignore[no-any-return]

    def not_compared(self) -> List[str]:
        """Return the names of all tables; ``launch verify`` cannot compare them: one process has no such rows."""
        return [f"table/{name}" for name in self.stores.names]
