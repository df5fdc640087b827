"""Tables of embeddings without a vocabulary, on the parameter servers: training adds a row for each new id.

    users = embedding.table("user", 16)
    vectors = embedding.lookup(users, x["user"])        # ids [batch] -> [batch, 16]

An id is any int64, or a string. By default, a table holds a row for every id that a training step has looked up. The
first value of a row is a function of the table and of the id. So the first value depends neither on the order in which
ids come nor on the number of servers.
"""

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, Optional, Tuple

from cluster.recommend.tables.lookups import Table, look_up, refuse_namesake
from cluster.recommend.tables.stores import ModelTables
from cluster.runtime.tensors import identities
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import extend, source_of_rows

__all__ = ["Rule", "Table", "after", "lookup", "table", "unused_for"]
_NAME = r"[A-Za-z0-9.][\w.-]*(/[\w.-]+)*"  # of a variable, as TensorFlow has it
_MOST_STEPS = (1 << 31) - 1


@dataclass(frozen=True)
class Rule:
    """A rule by which ids get or lose their rows in a table.

    ``made_by`` is the name of the function that made the rule, ``after`` or ``unused_for``. ``steps`` is the argument
    of that function.
    """

    made_by: str
    steps: int


def after(steps: int) -> Rule:
    """Return the rule by which an id gets its row once ``steps`` training steps have looked up the id.

    Until then, a lookup of the id returns its first value, and no gradient changes this value.

    Raises:
      ValueError: ``steps`` is not a whole number from 1 to 2**31 - 1.
    """
    return _rule("after", steps)


def unused_for(*, steps: int) -> Rule:
    """Return the rule by which an id loses its row after more than ``steps`` training steps without the id.

    An id that a later step looks up again counts as a new id.

    Raises:
      ValueError: ``steps`` is not a whole number from 1 to 2**31 - 1.
    """
    return _rule("unused_for", steps)


def _rule(name: str, steps: int) -> Rule:
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= _MOST_STEPS:
        raise ValueError(f"embedding.{name}: expected a number of steps from 1 to {_MOST_STEPS}, found {steps!r}")
    return Rule(name, steps)


def table(
    name: str,
    width: int,
    *,
    admit: Optional[Rule] = None,
    expire: Optional[Rule] = None,
    initializer: Any = None,
) -> Table:
    """Return a table of embeddings, for ``lookup``.

    Args:
      name: the name of the table in checkpoints; different tables of a model have different names.
      width: the number of values in a row.
      admit: the rule by which an id gets a row, ``after(steps)``; by default, the first training step that looks up an
        id gives it a row.
      expire: the rule by which an id loses its row, ``unused_for(steps=…)``; by default, no id loses its row.
      initializer: the initializer of new rows: TensorFlow's ``zeros_initializer``, ``ones_initializer``,
        ``constant_initializer`` of one number, ``random_uniform_initializer`` or ``random_normal_initializer``. By
        default, the values are normal with mean 0 and a standard deviation of 1 / sqrt(width).

    Raises:
      ValueError: ``name`` cannot be the name of a variable, ``width`` is below 1, or another argument is unsuitable.
    """
    if not isinstance(name, str) or not re.fullmatch(_NAME, name, re.ASCII):
        raise ValueError(f"embedding.table: expected a name of letters, digits, _ . - and /, found {name!r}")
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"embedding.table {name!r}: expected a width of at least 1, found {width!r}")
    given = tf.random_normal_initializer(0.0, width**-0.5) if initializer is None else initializer
    admitted = _steps(name, "admit", admit, "after", "2")
    expired = _steps(name, "expire", expire, "unused_for", "steps=100000")
    return Table(name, width, _kind(name, given), admitted or 1, expired)


def _steps(table_name: str, argument: str, rule: Any, maker: str, example: str) -> int:
    """Return the steps of a rule, 0 for none. Raises ValueError for a rule that another function made."""
    if rule is None:
        return 0
    if not isinstance(rule, Rule) or rule.made_by != maker:
        wanted = f"{argument} like embedding.{maker}({example})"
        raise ValueError(f"embedding.table {table_name!r}: expected {wanted}, found {rule!r}")
    return rule.steps


def lookup(table: Table, ids: Any, combiner: Optional[str] = None) -> Any:
    """Return the rows of ``ids`` in ``table``, float32.

    Args:
      ids: integers or strings. A dense tensor of shape [...] gives [..., width]. A ``tf.SparseTensor`` or a
        ``tf.RaggedTensor`` of shape [batch, any] gives [batch, width]: ``combiner`` makes one row of an example's rows,
        and an example without ids gives zeros.
      combiner: "sum", "mean" or "sqrtn" (the sum divided by the square root of the number) of an example's rows. It is
        required for sparse and ragged ids. With dense ids, it combines the rows over the last axis of ``ids``.

    Raises:
      ValueError: ``ids`` have another type or shape, ``combiner`` is missing or unknown, or the lookup is inside a
        loop, a branch or a function.
    """
    if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
        return _combined(table, ids, _known(table, combiner))
    ids = tf.convert_to_tensor(ids)
    if combiner is not None and ids.shape.ndims == 0:
        raise ValueError(f"embedding.lookup in {table.name!r}: expected ids with an axis to combine over, found none")
    rows = _rows(table, tf.reshape(ids, [-1]))
    found = tf.reshape(rows, tf.concat([tf.shape(ids), [table.width]], 0))
    found.set_shape([*ids.shape.as_list(), table.width] if ids.shape.ndims is not None else None)
    return found if combiner is None else _over_last_axis(table, found, combiner)


def _known(table: Table, combiner: Optional[str]) -> str:
    if combiner not in ("sum", "mean", "sqrtn"):
        raise ValueError(
            f"embedding.lookup in {table.name!r}: expected a combiner, sum, mean or sqrtn, found {combiner!r}"
        )
    return combiner


def _over_last_axis(table: Table, rows: Any, combiner: str) -> Any:
    total, number = tf.reduce_sum(rows, -2), tf.cast(tf.maximum(tf.shape(rows)[-2], 1), tf.float32)
    return total / _divisor(number, _known(table, combiner))


def _combined(table: Table, ids: Any, combiner: str) -> Any:
    """Return one row for each example of sparse or ragged ids [batch, any]."""
    if ids.shape.ndims != 2:
        raise ValueError(
            f"embedding.lookup in {table.name!r}: expected sparse or ragged ids of shape [batch, any], found shape"
            f" {ids.shape}"
        )
    if isinstance(ids, tf.SparseTensor):
        flat, example, batch = ids.values, ids.indices[:, 0], ids.dense_shape[0]
    else:
        flat, example, batch = ids.flat_values, ids.value_rowids(), ids.nrows()
    total = tf.math.unsorted_segment_sum(_rows(table, flat), example, batch)
    number = tf.math.unsorted_segment_sum(tf.ones_like(example, tf.float32), example, batch)[:, tf.newaxis]
    return tf.math.divide_no_nan(total, _divisor(number, combiner))


def _divisor(number: Any, combiner: str) -> Any:
    """Return what to divide the sum of so many rows by."""
    return {"sum": tf.ones_like(number), "mean": number, "sqrtn": tf.sqrt(number)}[combiner]


def _rows(table: Table, ids: Any) -> Any:
    """Return the rows of flat ids, [n, width]."""
    if _is_sketched():
        return tf.zeros([tf.size(ids), table.width])
    _refuse_inside(table)
    refuse_namesake(table)
    with tf.name_scope(f"{table.name}_lookup"):
        if ids.dtype != tf.string and not ids.dtype.is_integer:
            raise ValueError(f"embedding.lookup in {table.name!r}: expected ids that are integers or strings, found"
                             f" {ids.dtype.name}")  # fmt: skip
        ids = identities(ids)
        source = source_of_rows()
        if source is not None:
            return source(table, ids)
    extend(ModelTables)
    return look_up(table, ids)


def _is_sketched() -> bool:
    """Return whether Keras 3 calls a layer to see the shapes of what comes out, in a graph that nobody runs."""
    graph = tf.get_default_graph()
    return bool(graph.building_function) and str(graph.name).startswith("scratch_graph")


def _refuse_inside(table: Table) -> None:
    graph = tf.get_default_graph()
    if graph.building_function or graph._get_control_flow_context() is not None:
        raise ValueError(
            f"embedding.lookup in {table.name!r}: expected a lookup outside of loops, branches and functions,"
            " found one inside; look up all ids before the loop, branch or function"
        )


def _kind(name: str, initializer: Any) -> Tuple[str, float, float, int]:
    """Return what is known of an initializer: kind, two numbers, seed."""
    made = initializer() if isinstance(initializer, type) else initializer
    seed = int(getattr(made, "seed", None) or 0)
    if isinstance(made, (tf.zeros_initializer, tf.ones_initializer)):
        return "constant", float(isinstance(made, tf.ones_initializer)), 0.0, 0
    if isinstance(made, tf.constant_initializer) and isinstance(made.value, Real):
        return "constant", float(made.value), 0.0, 0
    if isinstance(made, tf.random_uniform_initializer):
        low, high = float(made.minval), float(1.0 if made.maxval is None else made.maxval)
        return "uniform", low, high, seed
    if type(made) is tf.random_normal_initializer:
        return "normal", float(made.mean), float(made.stddev), seed
    raise ValueError(
        f"embedding.table {name!r}: expected a zeros, ones, constant, random_uniform or random_normal initializer,"
        f" found {initializer!r}"
    )
