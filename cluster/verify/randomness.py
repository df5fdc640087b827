"""Operations that draw random numbers: every graph draws others."""

import re
from typing import Any, Iterable, Iterator

from cluster.errors import JobError
from cluster.model.state import place
from cluster.variables.functions import called

_SEEDS = {"seed", "seed2"}  # attributes by which TensorFlow seeds what draws; "Stateless…" has an input for them
_UNUSED = "ComputeAccidentalHits"  # has both and draws nothing
_GENERATES = re.compile("Stateful(Random|Standard|Truncated|Uniform)|NonDeterministic")  # seeded by a variable, or not


def draws(op: Any) -> bool:
    """Return whether an operation draws random numbers outside of loops and branches: another graph can get these."""
    return _draws(op.type, [each.name for each in op.op_def.attr]) and op._get_control_flow_context() is None


def _draws(kind: str, attributes: Iterable[str]) -> bool:
    return ({*attributes} >= _SEEDS and kind != _UNUSED) or bool(_GENERATES.match(kind))


def refuse_random(ops: Iterable[Any]) -> None:
    """Refuse a step that draws random numbers where no graph can be given them.

    Args:
      ops: what a step runs, in the current graph.

    Raises:
      JobError: it does; names the line of the job.
    """
    for op in sorted(ops, key=lambda each: str(each.name)):
        for node in _nodes(op):
            if _draws(node.op, node.attr):
                raise JobError(
                    f"{place(op)}: expected random numbers only for the loss and its gradients, and outside of loops,"
                    f" branches and functions, found others ({node.op} {op.name}); launch verify needs an argument of"
                    " the job that switches this off"
                )


def _nodes(op: Any) -> Iterator[Any]:
    """Return the definition of an operation, and of those in the functions that it calls."""
    yield op.node_def
    if not called(op.node_def):
        return
    library = {each.signature.name: each for each in op.graph.as_graph_def().library.function}
    left, seen = called(op.node_def), {""}
    while left:
        name = left.pop()
        if name not in seen and name in library:
            seen.add(name)
            for node in library[name].node_def:
                yield node
                left += called(node)
