"""Values of a worker's step that no other graph can compute again. The chief's graphs receive them by placeholders.

random numbers   every graph draws different ones
rows of tables   only the servers have them

Each copy of the model has its own values, in the order in which the model creates them. Random numbers that no
placeholder can replace, for example in a loop, are refused.
"""

import re
from contextlib import contextmanager
from typing import Any, Container, Iterable, Iterator, List, Sequence

from cluster.errors import JobError, TrainingError
from cluster.model.model_state import place
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import rows_from
from cluster.updates.grouped import FED_TABLES
from cluster.variables.functions import Functions
from cluster.variables.uses import replace

_SEEDS = {"seed", "seed2"}  # attributes for the seed of operations that draw; "Stateless…" has an input for the seed
_UNUSED = "ComputeAccidentalHits"  # has both attributes and draws nothing
_GENERATES = re.compile("Stateful(Random|Standard|Truncated|Uniform)|NonDeterministic")  # by a variable, or unseeded


def draws(op: Any) -> bool:
    """Return whether ``op`` draws random numbers outside loops and branches, so that other graphs can receive them."""
    return _draws(op.type, [each.name for each in op.op_def.attr]) and op._get_control_flow_context() is None


def _draws(kind: str, attributes: Iterable[str]) -> bool:
    return ({*attributes} >= _SEEDS and kind != _UNUSED) or bool(_GENERATES.match(kind))


def refuse_random(ops: Iterable[Any]) -> None:
    """Refuse a step that draws random numbers where no graph can receive them.

    Args:
      ops: the operations of a step, in the current graph.

    Raises:
      JobError: the step draws such numbers; the error names the line of the job.
    """
    functions = Functions(tf.get_default_graph())
    for op in sorted(ops, key=lambda each: str(each.name)):
        for node in functions.nodes(op):
            if _draws(node.op, node.attr):
                raise JobError(
                    f"{place(op)}: expected random numbers only for the loss and its gradients, and outside of loops,"
                    f" branches and functions, found others ({node.op} {op.name}); give the job an argument that"
                    " switches them off for launch verify"
                )


def given_to(copies: Iterable[Sequence[Any]], needed: Container[Any], rows: Container[Any]) -> List[List[Any]]:
    """Return, for each copy of the model in a worker's graph, the values that no other graph can compute again.

    Call this function before the lookups are moved to the servers.

    Args:
      copies: the operations of each copy, in the order of their creation.
      needed: the operations behind losses and gradients.
      rows: the operations that take rows of tables.
    """
    return [_given(copy, needed, rows) for copy in copies]


def _given(copy: Iterable[Any], needed: Container[Any], rows: Container[Any]) -> List[Any]:
    mine = [op for op in copy if op in needed]
    drawn = [each for op in mine if draws(op) for each in op.outputs]
    return [*(op.outputs[0] for op in mine if op in rows), *drawn]


class Holes:
    """Placeholders in one of the chief's graphs, which receive values of the workers."""

    def __init__(self) -> None:
        self._rows: List[Any] = []

    @property
    def number_of_lookups(self) -> int:
        """Return the number of placeholders for rows of tables."""
        return len(self._rows)

    @contextmanager
    def rows(self) -> Iterator[None]:
        """Inside this context, replace lookups in tables by placeholders in the current graph."""
        with rows_from(self._row):
            yield

    def _row(self, table: Any, ids: Any) -> Any:
        tf.add_to_collection(FED_TABLES, table.name)
        self._rows.append(tf.placeholder(tf.float32, [None, table.width]))
        return self._rows[-1]

    def of(self, copy: Iterable[Any], needed: Container[Any]) -> List[Any]:
        """Return the placeholders of one copy of the model, in the order of the values of ``given_to``.

        The method also creates the placeholders of random numbers, and connects them to the operations that use these.

        Args:
          copy: the operations of the copy, in the order of their creation.
          needed: the operations behind losses and gradients.
        """
        rows = {each.op for each in self._rows}
        return [each if each.op in rows else _stand_in(each) for each in _given(copy, needed, rows)]


def _stand_in(drawn: Any) -> Any:
    with tf.control_dependencies(None):
        hole = tf.placeholder(drawn.dtype, drawn.shape)
    replace(drawn, hole, set(drawn.consumers()))
    return hole


def refuse_other_number(holes: Sequence[Sequence[Any]], given: Sequence[Sequence[Any]]) -> None:
    """Refuse copies of the model that have more or fewer random numbers and lookups than the chief's graph.

    Args:
      holes: the placeholders of each copy, for the copies of all workers.
      given: the values of each copy of one worker; all workers have the same number of copies.

    Raises:
      TrainingError: the numbers differ.
    """
    here, there = [len(copy) for copy in holes], [len(copy) for copy in given]
    if here != there * (len(here) // len(there)):
        raise TrainingError(
            "expected every call of model to draw random numbers, and to look up rows, equally often, found calls that"
            f" do so {sorted({*here, *there})} times; launch verify cannot compare them"
        )
