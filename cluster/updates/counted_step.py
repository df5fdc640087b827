"""The global step that an optimizer sees and counts. The last operation of a step counts the servers' own global step.

In one process ``apply_gradients`` counts the step when the variables are updated, and later operations of the optimizer
may read the new number. On the servers other programs read the global step meanwhile. So the optimizer has a separate
variable, which takes the servers' number when an update begins. Nothing else reads this variable.
"""

import inspect
from typing import Any

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.optimizer_gradients import described
from cluster.variables.uses import handle_of, writes

LEFT_OUT = (
    "the optimizer counts a step only under a condition; unlike in one process, skipped steps count too, and a loss"
    " scale depends on gradients of parts of the batch, which overflow later than those of the whole batch"
)
_LOOPS = ("Enter", "RefEnter")
_MOVED = ("Cast", "Bitcast")


class CountedStep:
    """A variable that replaces a graph's global step.

    Args:
      step: the global step; code that asks TensorFlow for the global step afterwards receives ``variable``.
      name: the name of ``variable``.
    """

    def __init__(self, step: Any, name: str):
        self._step = step
        self.variable = tf.get_variable(
            name, [], tf.int64, tf.zeros_initializer(), trainable=False, collections=[], use_resource=False
        )
        tf.get_collection_ref(tf.GraphKeys.GLOBAL_STEP)[:] = [self.variable]

    def settle(self, optimizer: Any) -> bool:
        """Copy the global step into ``variable`` before any operation uses it; call this once the update is built.

        Returns:
          Whether ``optimizer`` counts a step only under a condition, and so may skip counting it.

        Raises:
          JobError: the optimizer does not count exactly one for each step.
        """
        counts = writes(self.variable)
        if len(counts) > 1 or not all(map(_adds_one, counts)) or writes(self._step):
            raise JobError(
                f"{described(optimizer, 'apply_gradients')}: expected apply_gradients to count a step by"
                " global_step.assign_add(1), or not at all, found another change of the global step; every step must"
                " count once"
            )
        users = [op for op in handle_of(self.variable).consumers() if op is not self.variable.initializer]
        # TensorFlow moves a cast before the read of its variable, so the cast itself must wait.
        users += [op for op in self.variable.graph.get_operations() if op.type in _MOVED and _is_outside(op)]
        with tf.control_dependencies(None):
            begin = tf.assign(self.variable, self._step.read_value()).op
        for op in users:
            op._add_control_input(begin)
        return not all(map(_is_outside, counts))


def applied(optimizer: Any, pairs: Any, step: Any) -> Any:
    """Return the result of an optimizer's ``apply_gradients``, called with the global step if it accepts one."""
    try:
        inspect.signature(optimizer.apply_gradients).bind(pairs, global_step=step)
    except TypeError:
        return optimizer.apply_gradients(pairs)
    return optimizer.apply_gradients(pairs, global_step=step)


def _is_outside(op: Any) -> bool:
    return op._get_control_flow_context() is None


def _adds_one(op: Any) -> bool:
    """Return whether a change of the step adds 1. The change may be in a branch, where an optimizer skips a step."""
    if op.inputs[0].op.type in _LOOPS:
        return False
    if op.type == "AssignAdd":
        return bool(tf.get_static_value(op.inputs[1]) == 1)
    added = op.inputs[1].op
    numbers = [tf.get_static_value(each) for each in added.inputs]
    return op.type == "Assign" and added.type in ("Add", "AddV2") and 1 in numbers and _reads(added, op.inputs[0])


def _reads(added: Any, handle: Any) -> bool:
    """Return whether one of the summands is a plain read of the variable."""
    return any(each.op.type == "Identity" and each.op.inputs[0] is handle for each in added.inputs)
