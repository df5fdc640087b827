"""Operations that draw random numbers: every graph draws others."""

import re
from typing import Any, Iterable, Iterator

from cluster.errors import JobError
from cluster.model.state import place
from cluster.variables.functions import called

# Operations that count by themselves; those called "Stateless…" get all they need as an input.
_DRAWS = re.compile(
    r"^(Stateful)?(Random|Truncated|ParameterizedTruncated|Standard|Uniform|Multinomial|NonDeterministic)"
)


def draws(op: Any) -> bool:
    """Return whether an operation draws random numbers outside of loops and branches: another graph can get these."""
    return bool(_DRAWS.match(op.type)) and op._get_control_flow_context() is None


def refuse_random(ops: Iterable[Any]) -> None:
    """Refuse a step that draws random numbers where no graph can be given them.

    Args:
      ops: what a step runs, in the current graph.

    Raises:
      JobError: it does; names the line of the job.
    """
    for op in sorted(ops, key=lambda each: str(each.name)):
        for kind in _kinds(op):
            if _DRAWS.match(kind):
                raise JobError(
                    f"{place(op)}: expected random numbers only for the loss and its gradients, and outside of loops,"
                    f" branches and functions, found others ({kind} {op.name}); launch verify needs an argument of the"
                    " job that switches this off"
                )


def _kinds(op: Any) -> Iterator[str]:
    """Return the type of an operation, and of those in the functions that it calls."""
    yield op.type
    if not called(op.node_def):
        return
    library = {each.signature.name: each for each in op.graph.as_graph_def().library.function}
    left, seen = called(op.node_def), {""}
    while left:
        name = left.pop()
        if name not in seen and name in library:
            seen.add(name)
            for node in library[name].node_def:
                yield node.op
                left += called(node)
