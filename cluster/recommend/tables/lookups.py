"""Tables and lookups in a graph that is being built; checks that refuse lookups which cannot be trained correctly."""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from cluster.job import Job
from cluster.runtime.server_state import MOST_ROWS
from cluster.runtime.subgraph import needs_state
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from cluster.variables.uses import uses

_COLLECTION = "embedding_lookups"


@dataclass(frozen=True)
class Table:
    """The name and the settings of a table, whose rows have ``width`` numbers; see ``cluster.embedding.table``."""

    name: str
    width: int
    initializer: Tuple[str, float, float, int]  # kind, two numbers, seed; see ``initializers``
    admit: int = 1  # steps that have to have an id before it gets a row
    expire: int = 0  # steps without an id after which its row is removed; 0: never
    most: int = 0  # rows on all servers together; 0: no bound
    seconds: float = 0.0  # without an id after which its row is removed; 0: never


class Lookup(NamedTuple):
    """One lookup in a graph.

    ``ids`` is int64 [n]. ``variable`` stands for the table in the graph. ``numbers`` is the tensor with the number of
    each id's row in ``variable``. It is an identity of ``ids`` until the stores replace its input. ``rows`` is the
    operation that takes these rows from ``variable``.
    """

    table: Table
    variable: Any
    ids: Any
    numbers: Any
    rows: Any


def lookups(graph: Any) -> List[Lookup]:
    """Return all lookups of ``graph``, in the order in which they were added."""
    return list(graph.get_collection(_COLLECTION))


def look_up(table: Table, ids: Any) -> Any:
    """Add a lookup in ``table`` to the current graph, and return the rows of ``ids`` [n], float32 [n, width]."""
    variable = _stand_in(table)
    with tf.name_scope(f"{table.name}_lookup"):
        numbers = tf.identity(ids, name="numbers")  # so what needs the rows needs what makes the ids, too
        rows = tf.gather(variable, numbers)
    taken = next(op for op in numbers.consumers() if op.type in ("GatherV2", "ResourceGather"))
    tf.add_to_collection(_COLLECTION, Lookup(table, variable, ids, numbers, taken))
    return rows


def _stand_in(table: Table) -> Any:
    """Return the variable that a model takes rows of.

    It never has a value. The servers' rows take its place.
    """
    with tf.variable_scope(tf.VariableScope(reuse=tf.AUTO_REUSE), auxiliary_name_scope=False):
        return tf.get_variable(
            table.name, [MOST_ROWS, table.width], tf.float32, tf.zeros_initializer(), use_resource=False
        )


def refuse_namesake(table: Table) -> None:
    """Refuse ``table`` if the model has another table with the same name. Raises ValueError."""
    known = _tables(tf.get_default_graph())
    if known.setdefault(table.name, table) != table:
        raise ValueError(
            f"embedding.table {table.name!r}: expected one table of this name, found {known[table.name]} and {table}"
        )


def _tables(graph: Any) -> Dict[str, Table]:
    held = graph.get_collection_ref("embedding_tables")
    if not held:
        held.append({})
    found: Dict[str, Table] = held[0]
    return found


def refuse(lookups: Sequence[Lookup], job: Job, train: Train, is_elementwise: bool) -> None:
    """Refuse ``lookups`` if a setting, or another use of their tables, makes correct training impossible.

    Args:
      is_elementwise: whether the optimizer updates every element independently of other elements.

    Raises:
      JobError: there are lookups, and such a setting or use.
    """
    settings = {
        "train.backup_workers": train.backup_workers > 0,
        "launch verify and train.clip_norm": train.verify and train.clip_norm is not None,
        "an optimizer of your own": not is_elementwise,
    }
    for name, is_so in settings.items():
        refuse_anywhere(lookups if is_so else [], job, name)
    for each in lookups:
        _refuse_other_uses(each, [other.rows for other in lookups], job)


def refuse_staleness(lookups: Sequence[Lookup], job: Job, boundary: Sequence[Any], has_shards: bool) -> None:
    """Refuse ``train.table_staleness`` if ids depend on more than their batch, or the dataset is of ``cluster.shards``.

    Args:
      lookups: the lookups of a training step.
      boundary: the tensors of the step's batch.
      has_shards: whether the dataset is of ``cluster.shards``.

    Raises:
      JobError: the setting cannot be used with these lookups or this dataset.
    """
    key = "train.table_staleness"
    job.check("inputs", f"a dataset without shards, required by {key}", "one of cluster.shards", not has_shards)
    for each in lookups:
        state = needs_state([each.ids], boundary)
        found = f"ids for the table {each.table.name!r} that depend on {', '.join(op.name for op in state[:3])}"
        job.check("model", f"ids that depend only on the batch, with {key}", found, not state)


def refuse_anywhere(lookups: Sequence[Lookup], job: Job, what: str) -> None:
    """Refuse all lookups in embedding tables.

    Args:
      what: the setting that excludes tables, as the error names it.

    Raises:
      JobError: ``lookups`` is not empty.
    """
    found = f"the embedding table {lookups[0].table.name!r}" if lookups else "none"
    job.check("model", f"no embedding tables with {what}", found, not lookups)


def _refuse_other_uses(lookup: Lookup, known: Sequence[Any], job: Job) -> None:
    name = lookup.table.name
    for op, _ in uses(lookup.variable):
        found = f"the operation {op.name}, which uses the whole table {name!r}"
        job.check("model", "embedding.lookup for every use of a table", found, op in known)
