"""Models that draw random numbers: every graph draws others, so they cannot be verified."""

import re
from typing import Any, Iterable, Iterator, Set

from cluster.engine import tf
from cluster.errors import JobError
from cluster.job import Job
from cluster.state import place

# Operations that count by themselves; those called "Stateless…" get all they need as an input.
_DRAWS = re.compile(r"^(Stateful)?(Random|Truncated|ParameterizedTruncated|Standard|Uniform|Multinomial|NonDeterministic)")


def refuse_random(job: Job, ops: Iterable[Any]) -> None:
    """Refuse a step that draws random numbers.

    Args:
      ops: what a step runs, in the current graph.

    Raises:
      JobError: it does; names the line of the job.
    """
    for op in sorted(ops, key=lambda each: str(each.name)):
        for kind in _kinds(op):
            if _DRAWS.match(kind):
                raise JobError(
                    f"{place(op)}: expected a model that computes the same whenever it is given the same batch, found"
                    f" one that draws random numbers ({kind} {op.name}); launch verify needs it without, say by an"
                    " argument of the job"
                )


def _kinds(op: Any) -> Iterator[str]:
    """The types of an operation that keeps state, and of those in the functions that it calls."""
    if op.op_def is None or op.op_def.is_stateful or not op.type.startswith("Stateless"):
        yield op.type
    library = {each.signature.name: each for each in op.graph.as_graph_def().library.function} if _calls(op) else {}
    left, seen = list(_calls(op)), set()  # type: ignore[var-annotated]
    while left:
        name = left.pop()
        if name in seen or name not in library:
            continue
        seen.add(name)
        for node in library[name].node_def:
            yield node.op
            left += [attr.func.name for attr in node.attr.values() if attr.HasField("func")]


def _calls(op: Any) -> Set[str]:
    """The functions that an operation names."""
    return {attr.func.name for attr in op.node_def.attr.values() if attr.HasField("func")}
