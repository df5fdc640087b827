"""A worker's own variables: the variables that its model creates, as on one machine, in the memory of its host.

The author's code, the model and TensorFlow use only these variables. The transport gives the variables their values
between two steps (``cluster.variables.local_copies``), and sends their gradients. Towers share the variables.

A step reads each variable once for all its users, so that each device receives the value once. Otherwise each line that
uses a resource variable, such as a Keras layer's, would read it; a loop would read it in each iteration. TensorFlow
sends the result of every read to each device separately, even where all reads have the same value.
"""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Set

from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.variables.layout import Layout
from cluster.variables.masters import Masters
from cluster.variables.uses import handle_of, replace, writes

_MOVED = ("Cast", "Bitcast")


def device_setter(task: Task, device: str) -> Callable[[Any], str]:
    """Return a device function that places variables in the memory of ``task``'s host, all else on ``device``."""
    setter: Callable[[Any], str] = tf.train.replica_device_setter(
        ps_tasks=1,
        ps_device=f"/job:{task.role}/device:CPU:0",
        worker_device=device,
        ps_strategy=lambda op: task.index,
    )
    return setter


class Mirrors:
    """The variables of one worker's graph, and the operations that give them their values.

    Args:
      variables: the worker's variables, by name.
      step: the worker's own variable for the global step.
      layout: the pieces of the variables.
      masters: the servers' variables.
    """

    def __init__(self, variables: Mapping[str, Any], step: Any, layout: Layout, masters: Masters):
        self.variables, self.step = dict(variables), step
        self._layout, self._masters = layout, masters

    def assign(self, values: Mapping[str, Any], fetched: Iterable[str], step: Any) -> Any:
        """Return the operation that gives the variables the values for a step.

        Args:
          values: the received value of each piece that is sent in buckets, by the name of the piece.
          fetched: names of variables to read from the servers now.
          step: the global step that begins.
        """
        taken = [self._assign(name, self._value(name, values)) for name in self._in_buckets(values)]
        read = [self._assign(name, self._masters.read(name)) for name in fetched]
        return tf.group(*taken, *read, tf.assign(self.step, step).op)

    def fetch_within(self, step: Set[Any], values: Mapping[str, Any], fetched: Iterable[str], number: Any) -> None:
        """Let the operations of a step wait until the variables have their values for the step.

        Args:
          step: the operations of the step.
          values, fetched: as for ``assign``.
          number: the global step that begins.
        """
        with tf.control_dependencies(None):
            fresh = self.assign(values, fetched, number)
        make_wait([*self.variables.values(), self.step], step, fresh)

    def fill(self, step: Any) -> Any:
        """Return the operation that reads all variables except tables from the servers, for global step ``step``."""
        names = [name for name in self.variables if not self._masters.is_table(name)]
        return self.assign({}, names, step)

    def _in_buckets(self, values: Mapping[str, Any]) -> List[str]:
        return [name for name in self.variables if all(piece.name in values for piece in self._layout.pieces(name))]

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        return self._masters.join(name, [values[piece.name] for piece in self._layout.pieces(name)])

    def _assign(self, name: str, value: Any) -> Any:
        return tf.assign(self.variables[name], value).op


def make_wait(variables: Iterable[Any], step: Set[Any], fresh: Any) -> None:
    """Let each operation in ``step`` that takes one of ``variables`` wait for the operation ``fresh``."""
    waiting = {
        op for each in variables for op in each.op.outputs[0].consumers() if op in step and op is not each.initializer
    }
    # TensorFlow moves a cast to before the reading of its variable: it must wait itself. It moves none out of a loop.
    casts = {op for op in step if op.type in _MOVED and op._get_control_flow_context() is None}
    for op in waiting | casts:
        op._add_control_input(fresh)


class NotedInitializers:
    """The initializers that a model passes to ``tf.get_variable``.

    ``found`` has the initializer of each variable by the variable's name.
    """

    def __init__(self) -> None:
        self.found: Dict[str, Any] = {}

    def scope(self) -> Any:
        """Return a variable scope for building the model; inside the scope, this object notes the initializers."""

        def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            given = kwargs.get("initializer")
            self.found.setdefault(name, tf.glorot_uniform_initializer() if given is None else given)
            return getter(name, *args, **kwargs)

        return tf.variable_scope(tf.get_variable_scope(), custom_getter=get)


def read_once(variables: Iterable[Any], step: Set[Any]) -> None:
    """Connect all operations of a step that take a variable's value to the same read of the variable.

    Reads that wait for another operation, and reads in loops and branches, stay as they are.

    Args:
      variables: variables that no operation changes during a step.
      step: all operations that a step may run.
    """
    for variable in variables:
        reads = [op for op in handle_of(variable).consumers() if op in step and _is_plain_read(op)]
        for other in reads[1:]:
            replace(other.outputs[0], reads[0].outputs[0], step)


def _is_plain_read(op: Any) -> bool:
    return op.type == "ReadVariableOp" and not op.control_inputs and op._get_control_flow_context() is None


def read_before_loops(variables: Iterable[Any]) -> None:
    """Replace reads of variables inside loops by reads before the loops, for variables that the graph does not change.

    Call this function before gradients are created. For gradients TensorFlow 1.15 keeps the result of a read in a loop
    for each iteration. It may also place, on the variable's device, operations that use the result. Reference variables
    are already read before loops.
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
