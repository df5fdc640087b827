"""The loss that an optimizer's ``compute_gradients`` passes on to TensorFlow's own method: c · loss + r.

Every copy of the model has a loss and a weight, and the weights of a step add up to 1. A step's gradient is the sum of
weight · gradient(c · loss + r) over all copies. The sum is the gradient of c · (mean loss) + r, as in one process, if c
and r are the same in every copy. So neither may depend on the loss or on the batch; variables and constants are fine.
"""

from typing import Any, Iterable, Set

from cluster.runtime.tf_compat import tf

# Operations whose result is linear in their inputs that depend on the loss.
_OF_THE_FIRST = (
    "Identity", "Snapshot", "CheckNumerics", "Print", "Reshape", "Squeeze", "ExpandDims", "Sum", "Mean",
    "Cast", "Neg", "RealDiv", "Div",
)  # fmt: skip
_OF_ALL = ("Add", "AddV2", "AddN", "Sub", "Pack")
_OF_ONE = ("Mul",)
_SCALES = ("Neg", "RealDiv", "Div", "Mul")


class NotLinear(Exception):
    """The loss passed on is not c · loss + r; the text has the reason, and ``step`` the remedy."""

    def __init__(self, what: str, step: str):
        super().__init__(what)
        self.step = step


class PassedLoss:
    """Checks, by the operations in the graph, of the value that an optimizer computes from a loss and passes on.

    Args:
      loss: a scalar, the argument of the optimizer's ``compute_gradients``.
      batch: tensors that the loss depends on, and everything else that differs between copies of the model.
    """

    def __init__(self, loss: Any, batch: Iterable[Any] = ()):
        self._loss = loss
        self._varying = {loss.op, *(each.op for each in batch)}

    def scales(self, passed: Any) -> bool:
        """Return whether c differs from 1 in ``passed`` = c · loss + r.

        Raises:
          NotLinear: c or r depends on the loss or on the batch, or may depend on them.
        """
        if passed is self._loss:
            return False
        if not isinstance(passed, tf.Tensor):
            raise NotLinear(f"it passes on a {type(passed).__name__}, not a tensor", "pass on a tensor")
        return self._scales(passed)

    def refuse_varying(self, tensor: Any) -> None:
        """Refuse ``tensor``, another argument that the optimizer passes on, if it depends on the loss or on the batch.

        Raises:
          NotLinear: the argument depends on one of them.
        """
        if isinstance(tensor, tf.Tensor) and self._varies(tensor):
            raise _varying(tensor.op)

    def _scales(self, tensor: Any) -> bool:
        if tensor is self._loss:
            return False
        op = tensor.op
        varying = [each for each in op.inputs if self._varies(each)]
        if not _is_linear(op, varying):
            raise _varying(op)
        inner = [self._scales(each) for each in varying]
        return any(inner) or len(varying) > 1 or _multiplies(op, varying)

    def _varies(self, tensor: Any) -> bool:
        """Return whether a tensor depends on the loss or on the batch, by values or by control inputs.

        A variable that is read after a change may contain something of the loss.
        """
        found: Set[Any] = {tensor.op}
        left = [tensor.op]
        while left:
            op = left.pop()
            if op in self._varying:
                return True
            before = {each.op for each in op.inputs} | set([] if op.type == "Const" else op.control_inputs)
            left += before - found
            found |= before
        return False


def _varying(op: Any) -> NotLinear:
    return NotLinear(
        f"it passes on {op.type} ({op.name}), which depends on the loss or on the batch",
        "put that term into the loss of each example, which model returns",
    )


def _is_linear(op: Any, varying: Any) -> bool:
    """Return whether an operation's result is linear in its varying inputs, if these are linear in the loss."""
    if op.type == "Cast" and not (op.inputs[0].dtype.is_floating and op.outputs[0].dtype.is_floating):
        return False
    if op.type in _OF_THE_FIRST:
        return [each is op.inputs[0] for each in varying] == [True]
    return bool(varying) and (op.type in _OF_ALL or (op.type in _OF_ONE and len(varying) == 1))


def _multiplies(op: Any, varying: Any) -> bool:
    """Return whether an operation multiplies the loss by a factor other than 1."""
    if op.type == "Sub":
        return varying[0] is not op.inputs[0]
    return op.type in _SCALES or (op.type == "Mean" and op.inputs[0].shape.num_elements() != 1)
