"""One read of a variable in a step for all its users, so that each device gets its value once.

A resource variable, such as a Keras layer's, is read by each line that uses it, and in a loop once in each iteration.
TensorFlow sends every read by itself to each device, also where all of them give the same value.
"""

from typing import Any, Iterable, Iterator, Sequence, Set

from cluster.runtime.tf_compat import tf
from cluster.variables.uses import handle_of, replace, writes


def read_once(variables: Iterable[Any], step: Set[Any]) -> None:
    """Let the operations of a step that take a variable's value take it from one and the same read.

    Reads that wait for something, and those in loops and branches, stay as they are.

    Args:
      variables: which nothing changes during a step.
      step: all operations that a step may run.
    """
    for variable in variables:
        reads = [op for op in handle_of(variable).consumers() if op in step and _is_plain(op)]
        for other in reads[1:]:
            replace(other.outputs[0], reads[0].outputs[0], step)


def _is_plain(op: Any) -> bool:
    return op.type == "ReadVariableOp" and not op.control_inputs and op._get_control_flow_context() is None


def read_before_loops(variables: Iterable[Any]) -> None:
    """Let loops take the value of a variable that the graph does not change from a read before them.

    Do it before gradients are made: TensorFlow 1.15 keeps what is read in a loop for them, iteration by iteration, and
    may put what computes with it where the variable is. Reference variables are read before loops already.
    """
    for variable in variables:
        users = list(_in_loops(handle_of(variable)))
        reads = [op for op in users if _may_be_earlier(op)]
        if reads and not writes(variable):
            _read_earlier(variable, reads)


def _in_loops(handle: Any) -> Iterator[Any]:
    """Return the operations in loops, and in loops within loops, that take a variable's handle."""
    for entry in handle.consumers():
        if entry.type == "Enter":
            yield from entry.outputs[0].consumers()
            yield from _in_loops(entry.outputs[0])


def _may_be_earlier(op: Any) -> bool:
    """Return whether a read inside a loop can be moved before it.

    Such a read has users, and waits for nothing but its loop's next iteration.
    """
    if op.type != "ReadVariableOp" or not op.outputs[0].consumers():
        return False
    loop = op._get_control_flow_context()
    if loop is None or not loop.IsWhileContext():  # an imported graph's loop has none
        return False
    return all(each is loop.GetControlPivot().op for each in op.control_inputs)


def _read_earlier(variable: Any, reads: Sequence[Any]) -> None:
    with tf.control_dependencies(None):
        value = variable.value()
    for op in reads:
        users, loop = op.outputs[0].consumers(), op._get_control_flow_context()
        with tf.device(users[0].device):
            loop.Enter()
            brought = loop.AddValue(value)
            loop.Exit()
        replace(op.outputs[0], brought, set(users))
