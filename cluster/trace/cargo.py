"""Whose value, or gradient, a tensor is that travels between a worker and a ps: told by the graph around it."""

import re
from typing import Any, Callable, Container, Iterator, List, Sequence, Set, Tuple

from cluster.trace.spans import Place, Transfer

_ACCUMULATES = "AccumulatorApplyGradient"  # of (accumulator, local step, gradient …)
_CHANGES = re.compile(r"Apply|Scatter|Assign")  # of (variable, …)
_TASK = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
Step = Tuple[Set[str], List[Any]]  # variables that an operation leads to, and the operations to look at next


class Cargo:
    """Called with a transfer, it names the variables, or slices, whose values or gradients travel.

    There are none in what only keeps the tasks together: steps, counts, tokens, numbers of rows.

    Args:
      variables: the names of the model's variables.
    """

    def __init__(self, graph: Any, variables: Container[str]):
        self._graph, self._variables = graph, variables

    def __call__(self, transfer: Transfer) -> List[str]:
        try:
            op = self._graph.get_operation_by_name(transfer.tensor)
        except (KeyError, ValueError):  # made by TensorFlow itself
            return []
        if transfer.source.is_ps:
            return _nearest(op, self._made_of)
        return _nearest(op, lambda each: self._used_by(each, transfer.target)) if transfer.target.is_ps else []

    def _made_of(self, op: Any) -> Step:
        """On the task that holds them."""
        here = _task_of(op)
        return self._known([op.name]), [each.op for each in op.inputs if _task_of(each.op) == here]

    def _used_by(self, op: Any, target: Place) -> Step:
        """On the ``target``, and then, where gradients are clipped, on another ps."""
        travelled = _task_of(op).startswith("ps:")
        names, further = set(), []
        for user, position in _users(op):
            task = _task_of(user)
            if task == target.task or (task.startswith("ps:") if travelled else user.type == "Identity"):
                names.update(self._known([_changed(user, position)]))
                further.append(user)
        return names, further

    def _known(self, names: Sequence[str]) -> Set[str]:
        return {name for name in names if name in self._variables}


def _nearest(op: Any, look: Callable[[Any], Step]) -> List[str]:
    """The variables that the fewest operations lead to: a gradient's norm leads to all others when they are clipped."""
    seen, level = {op}, [op]
    while level:
        steps = [look(each) for each in level]
        names = {name for found, _ in steps for name in found}
        if names:
            return sorted(names)
        level = list(dict.fromkeys(each for _, ops in steps for each in ops if each not in seen))
        seen.update(level)
    return []


def _users(op: Any) -> Iterator[Tuple[Any, int]]:
    """The operations that take what one makes, each with the position among its inputs."""
    for output in op.outputs:
        for user in output.consumers():
            yield from ((user, at) for at, taken in enumerate(user.inputs) if taken is output)


def _changed(op: Any, position: int) -> str:
    """The variable that an operation changes, or collects gradients for, by its input at ``position``; "" for none."""
    if op.type.endswith(_ACCUMULATES):
        name: str = op.inputs[0].op.get_attr("shared_name").decode()
        return name.rpartition("/")[0] if position >= 2 else ""
    return str(op.inputs[0].op.name) if position >= 1 and _CHANGES.search(op.type) else ""


def _task_of(op: Any) -> str:
    found = _TASK.search(op.device)
    return f"{found[1]}:{found[2]}" if found else ""
