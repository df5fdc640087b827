"""Tables of embeddings without a vocabulary: rows appear as ids come, on the parameter servers.

    users = embedding.table("user", 16)
    vectors = embedding.lookup(users, x["user"])        # ids [batch] -> [batch, 16]

An id is any int64, or a string. A table holds a row for every id that a training step has looked up. Its first value
is a function of the table's name and of the id, so neither the order of ids nor the number of servers matters.
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
    """A rule for rows, by the function that made it, ``after`` or ``unused_for``, and its number of steps."""

    made_by: str
    steps: int


def after(steps: int) -> Rule:
    """Return the rule that gives an id its row in the step that is so many-th to have the id.

    Until then, the id has its first value, and no gradient changes it.

    Raises:
      ValueError: the number is none from 1 on.
    """
    return _rule("after", steps)


def unused_for(*, steps: int) -> Rule:
    """Return the rule that removes the row of an id after more than so many steps without the id.

    An id that comes again later begins as a new one.

    Raises:
      ValueError: the number is none from 1 on.
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
      name: of the table in checkpoints; a model's tables have names of their own.
      width: numbers in a row.
      admit: when an id gets a row, ``after(steps)``; without it in the first step that has the id.
      expire: when an id loses its row, ``unused_for(steps=…)``; without it never.
      initializer: of a new row: TensorFlow's ``zeros_initializer``, ``ones_initializer``, ``constant_initializer`` of
        one number, ``random_uniform_initializer`` or ``random_normal_initializer``. By default normal with a standard
        deviation of 1 / sqrt(width).

    Raises:
      ValueError: the name is none for a variable, the width is not positive, or another argument is of another kind.
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
    """Return the rows of ids, float32.

    Args:
      ids: integers or strings. Dense of any shape [...] give [..., width]. A ``tf.SparseTensor`` or a
        ``tf.RaggedTensor`` of shape [batch, any] gives [batch, width], by the combiner; an example without ids gives
        zeros.
      combiner: "sum", "mean" or "sqrtn" (the sum over the root of the number) of an example's rows. With dense ids it
        combines over their last axis.

    Raises:
      ValueError: ids of another type or shape, a combiner is missing or unknown, or the lookup is in a loop, a branch
        or a function.
    """
    if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
        return _combined(table, ids, _known(table, combiner))
    ids = tf.convert_to_tensor(ids)
    if combiner is not None and ids.shape.ndims == 0:
        raise ValueError(f"embedding.lookup in {table.name!r}: expected ids with an axis to combine over, found one id")
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
            f"embedding.lookup in {table.name!r}: expected one outside of loops, branches and functions, found one"
            " inside; look up all ids before"
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
