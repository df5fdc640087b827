"""Name the variables whose values, or gradients, a transferred tensor has.

The tensor travels between a worker and a ps. The graph around the tensor shows the variables.
"""

import re
from typing import Any, Container, Iterator, List, Mapping, Sequence, Set, Tuple

from cluster.steps.exchange import is_outbox
from cluster.trace.spans import DevicePlace, Transfer
from cluster.variables.masters import author_name

_ACCUMULATES = "AccumulatorApplyGradient"  # its first input is the accumulator
_CHANGES = re.compile(r"Apply|Scatter|Assign")  # their first input is the variable
_GRADIENTS = re.compile(r"gradient|grad|delta|indices|updates|value")  # other inputs are rates, steps and the like
_SHAPES = ("Reshape", "StridedSlice")
_TASK = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
Step = Tuple[Set[str], List[Any]]  # variables that an operation leads to, and the operations to look at next


class Payload:
    """Called with a transfer, it names the variables, or slices, whose values or gradients travel.

    There are no names in what only keeps the tasks together: steps, counts, tokens, numbers of rows.

    Args:
      variables: the names of the model's variables.
      buckets: of those that travel together, by the name under which they are collected, and kept for workers.
    """

    def __init__(self, graph: Any, variables: Container[str], buckets: Mapping[str, Sequence[str]]):
        self._graph, self._variables, self._buckets = graph, variables, buckets

    def __call__(self, transfer: Transfer) -> List[str]:
        try:
            op = self._graph.get_operation_by_name(transfer.tensor)
        except (KeyError, ValueError):  # made by TensorFlow itself
            return []
        if transfer.source.is_ps:
            return self._made_of(op)
        return self._made_into(op, transfer.target) if transfer.target.is_ps else []

    def _made_of(self, op: Any) -> List[str]:
        """Return the variables on its own task that a tensor was made of."""
        here = _task_of(op)
        seen, left = {op}, [op]
        while left:
            new = {taken.op for taken in left.pop().inputs} - seen
            left += [each for each in new if _task_of(each) == here]
            seen |= new
        return sorted(name for each in seen for name in self._held_by(each))

    def _held_by(self, op: Any) -> Sequence[str]:
        """Return the variables that an operation is, or whose values it keeps as they travel."""
        if op.type == "VariableV2" and is_outbox(op):
            return self._buckets.get(_push_of(op), [])
        name = author_name(op)
        return [name] if name in self._variables else []

    def _made_into(self, op: Any, target: DevicePlace) -> List[str]:
        """Return the variables that a tensor changes with the fewest operations.

        By the norm that clips gradients, a tensor changes every variable.
        """
        seen, level = {op}, [op]
        while level:
            steps = [self._used_by(each, target) for each in level]
            names = {name for found, _ in steps for name in found}
            if names:
                return sorted(names)
            level = list(dict.fromkeys(each for _, ops in steps for each in ops if each not in seen))
            seen.update(level)
        return []

    def _used_by(self, op: Any, target: DevicePlace) -> Step:
        """Return the variables that the users of an operation change, and these users.

        The users are on the ``target``, and then, where gradients are clipped, on another ps.
        """
        travelled = _task_of(op).startswith("ps:")
        names, further = set(), []
        for user, position in _users(op):
            task = _task_of(user)
            if task == target.task or (task.startswith("ps:") if travelled else user.type == "Identity"):
                names.update(self._changed(user, position))
                further.append(user)
        return names, further

    def _changed(self, op: Any, position: int) -> Set[str]:
        """Return the variables whose gradients an operation applies or collects.

        The gradient is the input at ``position`` among the operation's inputs.
        """
        is_change = _CHANGES.search(op.type) and _GRADIENTS.match(op.op_def.input_arg[position].name)
        if is_change and op.type.endswith(_ACCUMULATES):
            push = _push_of(op.inputs[0].op)
            return set(self._buckets.get(push, [push]))
        name = author_name(op.inputs[0].op) if is_change else ""
        return {name} if name in self._variables else set()


def _push_of(op: Any) -> str:
    """Return the name of the push that an accumulator collects, or that an outbox keeps."""
    name: str = op.get_attr("shared_name").decode()
    return name.rpartition("/")[0]


def _users(op: Any) -> Iterator[Tuple[Any, int]]:
    """Yield the operations that take what one makes, whatever its shape, each with the position among its inputs."""
    for output in op.outputs:
        for user in output.consumers():
            if user.type in _SHAPES and user.inputs[0] is output:
                yield from _users(user)
            else:
                yield from ((user, at) for at, taken in enumerate(user.inputs) if taken is output)


def _task_of(op: Any) -> str:
    found = _TASK.search(op.device)
    return f"{found[1]}:{found[2]}" if found else ""
