"""Tables of embeddings without a vocabulary, on the parameter servers: training adds a row for each new id.

    users = embedding.table("user", 16)
    vectors = embedding.lookup(users, x["user"])        # ids [batch] -> [batch, 16]

An id is any int64, or a string. By default, a table holds a row for every id that a training step has looked up. The
first value of a row is a function of the table and of the id. So the first value depends neither on the order in which
ids come nor on the number of servers.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, Optional, Union

from cluster.recommend.tables.feature_columns import dense_column, refusal
from cluster.recommend.tables.initializers import first_value_of
from cluster.recommend.tables.keras_rows import is_nothing, layer
from cluster.recommend.tables.lookups import Table, look_up, refuse_namesake
from cluster.recommend.tables.row_finder import RowFinder
from cluster.recommend.tables.stores import ModelTables
from cluster.runtime.tensors import identities
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import extend, source_of_rows

__all__ = ["Embedding", "Rows", "Rule", "Table", "after", "at_most", "column", "lookup", "table", "unused_for"]
_NAME = r"[A-Za-z0-9.][\w.-]*(/[\w.-]+)*"  # of a variable, as TensorFlow has it
_MOST_STEPS = (1 << 31) - 1


@dataclass(frozen=True)
class Rule:
    """A rule by which ids get or lose their rows in a table.

    ``made_by`` is the name of the function that made the rule: ``after``, ``unused_for`` or ``at_most``. ``steps`` is
    the argument of that function; with ``unused_for(hours=…)`` it is 0.
    """

    made_by: str
    steps: int
    hours: float = 0.0


def after(steps: int) -> Rule:
    """Return the rule by which an id gets its row once ``steps`` training steps have looked up the id.

    Until then, a lookup of the id returns its first value, and no gradient changes this value.

    Raises:
      ValueError: ``steps`` is not a whole number from 1 to 2**31 - 1.
    """
    return _rule("after", steps)


def unused_for(*, steps: Optional[int] = None, hours: Optional[float] = None) -> Rule:
    """Return the rule by which an id loses its row after more than so many steps, or hours, without the id.

    An id that a later step looks up again counts as a new id. After ``hours`` a row goes within another sixteenth of
    the time. A pause of more than a quarter of the time may count as a sixteenth: neither a pause of the training nor
    a wrong clock removes all rows.

    Args:
      steps: the number of training steps.
      hours: the hours of training, by the clock of each parameter server alone, in place of ``steps``.

    Raises:
      ValueError: both or neither are given, ``steps`` is not a whole number from 1 to 2**31 - 1, or ``hours`` not a
        number above 0.
    """
    if hours is None:
        return _rule("unused_for", steps)
    if steps is not None:
        raise ValueError(f"embedding.unused_for: expected either steps or hours, found {steps!r} and {hours!r}")
    if isinstance(hours, bool) or not isinstance(hours, (int, float)) or not 0 < hours < math.inf:
        raise ValueError(f"embedding.unused_for: expected a number of hours above 0, found {hours!r}")
    return Rule("unused_for", 0, float(hours))


def at_most(rows: int) -> Rule:
    """Return the rule by which a table has at most ``rows`` rows, and those that were not used for the longest time go.

    Each server has its part of the bound, rounded up. An update that passes the part removes a sixteenth of it, or
    more.

    Raises:
      ValueError: ``rows`` is not a whole number from 1 to 2**31 - 1.
    """
    return _rule("at_most", rows, "rows")


def _rule(name: str, steps: Any, what: str = "steps") -> Rule:
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= _MOST_STEPS:
        raise ValueError(f"embedding.{name}: expected a number of {what} from 1 to {_MOST_STEPS}, found {steps!r}")
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
      expire: the rule by which an id loses its row, ``unused_for(steps=…)``, ``unused_for(hours=…)`` or
        ``at_most(rows)``; by default, no id loses its row.
      initializer: the initializer of new rows, of ``tf`` or ``tf.keras.initializers``: zeros, ones, a constant of one
        number, random uniform or random normal; or Keras's name of one, such as "uniform". By default, the values are
        normal with mean 0 and a standard deviation of 1 / sqrt(width).

    Raises:
      ValueError: ``name`` cannot be the name of a variable, ``width`` is below 1, or another argument is unsuitable.
    """
    if not isinstance(name, str) or not re.fullmatch(_NAME, name, re.ASCII):
        raise ValueError(f"embedding.table: expected a name of letters, digits, _ . - and /, found {name!r}")
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"embedding.table {name!r}: expected a width of at least 1, found {width!r}")
    given = tf.random_normal_initializer(0.0, width**-0.5) if initializer is None else initializer
    admitted = _steps(name, "admit", admit, {"after": "2"})
    expired = _steps(name, "expire", expire, {"unused_for": "steps=100000", "at_most": "1000000"})
    is_bound = expire is not None and expire.made_by == "at_most"
    steps, most = (0, expired) if is_bound else (expired, 0)
    seconds = 0.0 if expire is None else 3600.0 * expire.hours
    return Table(name, width, first_value_of(name, given), admitted or 1, steps, most, seconds=seconds)


def _steps(table_name: str, argument: str, rule: Any, makers: Dict[str, str]) -> int:
    """Return the number of a rule, 0 for none. Raises ValueError for a rule that another function made."""
    if rule is None:
        return 0
    if not isinstance(rule, Rule) or rule.made_by not in makers:
        wanted = f"{argument} like " + " or ".join(f"embedding.{name}({of})" for name, of in makers.items())
        raise ValueError(f"embedding.table {table_name!r}: expected {wanted}, found {rule!r}")
    return rule.steps


def lookup(
    table: Table,
    ids: Any,
    combiner: Optional[str] = None,
    *,
    weights: Any = None,
    padding: Union[int, str, None] = None,
) -> Any:
    """Return the rows of ``ids`` in ``table``, float32.

    Args:
      ids: integers or strings. A dense tensor of shape [...] gives [..., width], and a ``tf.RaggedTensor`` of shape
        [batch, any] gives the ragged rows [batch, any, width]. With a combiner, a dense tensor [..., m] gives [...,
        width], and a ragged or a ``tf.SparseTensor`` [batch, any] gives [batch, width].
      combiner: "sum", "mean", "sqrtn" (the sum divided by the square root of the number) or "max" (the largest value of
        each column) of an example's rows. An example without ids gives zeros. It is required for sparse ids.
      weights: numbers in the places of ``ids``, by which their rows are multiplied. A mean is then divided by the sum
        of an example's weights, "sqrtn" by the square root of the sum of their squares; zeros where that is 0.
      padding: an id that fills an example up. It gets no row, is not sent, and does not count for ``combiner``; without
        a combiner, zeros take its place.

    Raises:
      ValueError: ``ids``, ``weights`` or ``padding`` have another type or shape, ``combiner`` is missing or unknown, or
        the lookup is inside a loop, a branch or a function.
    """
    return RowFinder(table, lambda flat: _rows(table, flat), padding).rows(ids, combiner, weights)


def column(table: Table, categorical: Any, combiner: str = "mean") -> Any:
    """Return a feature column of the rows of ``categorical``'s ids, in the place of TensorFlow's ``embedding_column``.

    Args:
      table: the table; several columns may share one.
      categorical: a column of ``tf.feature_column``, which makes the ids. Rows are made as ids come, so it may have
        up to 2**63 - 1 buckets.
      combiner: as of ``lookup``. As in ``embedding_column``, negative ids do not count, and weights up to 0 only for
        "sum".

    Raises:
      ValueError: ``table`` is no table, or ``categorical`` is no categorical column, or one of a sequence. The layer
        that gets the column refuses a combiner that ``lookup`` refuses.
    """
    if not isinstance(table, Table):
        raise ValueError(f"embedding.column: expected a table as the first argument, found {table!r}")
    problem = refusal(categorical)
    if problem is not None:
        raise ValueError(f"embedding.column in {table.name!r}: {problem}, found {categorical!r}")
    return dense_column(
        categorical, table.width, lambda ids, weights: lookup(table, ids, combiner, weights=weights), combiner != "sum"
    )


def Rows(
    name: str,
    width: int,
    combiner: Optional[str] = None,
    *,
    padding: Union[int, str, None] = None,
    admit: Optional[Rule] = None,
    expire: Optional[Rule] = None,
    initializer: Any = None,
) -> Any:
    """Return a Keras layer that looks up its input in the table of this name, in the place of ``Embedding``.

    The layer has no weights: the parameter servers have the rows. Its input has a dtype of integers or strings, where
    ``tf.keras.Input`` has float32 by default. With an integer ``padding`` and without ``combiner``, the layer gives the
    mask of ``Embedding(mask_zero=True)``.

    Args: as of ``table`` and ``lookup``.

    Raises:
      ValueError: an argument is unsuitable.
    """
    rows = table(name, width, admit=admit, expire=expire, initializer=initializer)
    masked = padding if combiner is None and isinstance(padding, int) else None
    return layer(lambda ids: lookup(rows, ids, combiner, padding=padding), masked)


def Embedding(
    input_dim: Any,
    output_dim: int,
    embeddings_initializer: Any = "uniform",
    embeddings_regularizer: Any = None,
    *,
    mask_zero: bool = False,
    name: str,
) -> Any:
    """Return ``Rows`` for these arguments of Keras's ``Embedding``, for a library that makes such layers itself.

    For example ``deepctr.inputs.Embedding = embedding.Embedding``. ``name`` is the table's name. ``input_dim`` bounds
    no id: rows are made as their ids come. With ``mask_zero`` the id 0 has a row too, as in Keras.

    Raises:
      ValueError: ``embeddings_regularizer`` has a factor other than 0, since no step reads a whole table; or another
        argument is unsuitable.
    """
    if not is_nothing(embeddings_regularizer):
        raise ValueError(
            f"embedding.Embedding {name!r}: expected no regularizer, which would read the whole table in each step,"
            f" found {embeddings_regularizer!r}; set its factor to 0"
        )
    rows = table(name, output_dim, initializer=embeddings_initializer)
    return layer(lambda ids: lookup(rows, ids), 0 if mask_zero else None, name)


def _rows(table: Table, ids: Any) -> Any:
    """Return the rows of flat ids, [n, width]."""
    if _is_sketched():
        return tf.zeros([tf.size(ids), table.width])
    _refuse_inside(table)
    refuse_namesake(table)
    with tf.name_scope(f"{table.name}_lookup"):
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
