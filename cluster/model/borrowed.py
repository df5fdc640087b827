"""Copies of a model that depend on each other: an object that outlives a call of ``model`` keeps its tensors."""

from typing import Any, Sequence, Set

from cluster.errors import JobError
from cluster.model.state import place
from cluster.sharing.variables import Sharing
from cluster.variables.uses import sources


def refuse_borrowed(sharing: Sharing, results: Sequence[Sequence[Any]], varying: Set[Any]) -> None:
    """Refuse a copy of the model that depends on what another copy computes for itself.

    What was made with a variable is every copy's. So is what depends on no ``varying`` operation: a constant.

    Args:
      results: of each copy its loss and gradients.
      varying: the operations of variables and of batches.

    Raises:
      JobError: there is one; names the line of what it depends on.
    """
    if len(results) == 1:  # the graph of most workers need not be walked
        return
    for index, of_copy in enumerate(results):
        found = sources(of_copy) & sharing.of_others(index)
        borrowed = [op for op in found if ({op} | sources(op.inputs)) & varying]
        if borrowed:
            first = min(borrowed, key=lambda op: str(op.name))
            raise JobError(
                f"{place(first)}: the loss of one tower depends on this operation of another; expected each call of"
                " model to make its own: an object that outlives a call must keep no tensors"
            )
