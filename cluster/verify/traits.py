"""Traits of a model that its plain graph shows: batch statistics, coarse numbers, reads of its optimizer."""

import re
from typing import Any, Dict, List, Optional

from cluster.runtime.tf_compat import tf
from cluster.variables.masters import plain_name
from cluster.variables.uses import ancestors, handle_of, readers, writes
from cluster.verify.digests import flat
from cluster.verify.plain import Plain
from cluster.verify.plain_step import eps_of

_REDUCES = ("Mean", "Sum")
_NORMALIZES = re.compile("FusedBatchNorm(V[23])?$")


def coarsest(plain: Plain) -> float:
    """Return the part by which two numbers of the coarsest type of a step are apart."""
    types = {tensor.dtype.base_dtype for op in ancestors([plain.train]) for tensor in op.outputs}
    return max(eps_of(each.name) for each in types if each.is_floating)


def takes_statistics(plain: Plain) -> bool:
    """Return whether the loss uses a mean over the examples that also moves an average, as of batch normalisation."""
    of_loss = ancestors([plain.loss])
    shared = of_loss & plain.of_updates
    fed = {tensor.op for tensor in flat({"": plain.fed})}
    return any(_normalizes(op) for op in of_loss) or any(_reduces(op) and ancestors([op]) & fed for op in shared)


def _normalizes(op: Any) -> bool:
    return bool(_NORMALIZES.match(op.type)) and bool(op.get_attr("is_training"))


def _reduces(op: Any) -> bool:
    """Return whether an operation takes sums or means over the first axis."""
    if op.type not in _REDUCES or op.inputs[0].shape.ndims is None:
        return False
    axes = tf.get_static_value(op.inputs[1])
    return axes is not None and 0 in {int(axis) % max(op.inputs[0].shape.ndims, 1) for axis in axes.reshape([-1])}


def read_while_changed(plain: Plain) -> Optional[str]:
    """Return the name of a variable that updates change and the optimizer reads in the same step."""
    applies = ancestors([plain.train]) - ancestors([plain.loss, *_ops(plain)]) - plain.of_updates
    for variable in plain.variables:
        if any(op in plain.of_updates for op in writes(variable)) and _is_read(variable, applies):
            return plain_name(variable)
    return None


def _ops(plain: Plain) -> List[Any]:
    return [tensor.op for each in plain.noted for tensor in tf.nest.flatten(each.grad)]


def _is_read(variable: Any, by: Any) -> bool:
    behind = {op for op, _ in readers(variable)}
    direct = {op for op in handle_of(variable).consumers() if op.type == "ReadVariableOp"}
    return bool((behind | direct) & by)


def computed(plain: Plain) -> Dict[str, str]:
    """Return what a step computes: the types of its operations and its constants, by name."""
    return {op.name: str(op.node_def if op.type == "Const" else op.type) for op in ancestors([plain.train])}
