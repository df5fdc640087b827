"""Gradients of one worker's towers, added up on its GPUs by TensorFlow's NCCL operations: ``train.tower_sum: nccl``.

    GPU:0   gradient ──┐          ┌─ NcclAllReduce ── sum ──┐
                       ├─ ready ──┤                         ├── the worker's processor: one copy of the sum
    GPU:1   gradient ──┘          └─ NcclAllReduce ── sum ──┘

NCCL waits, without a limit, until all participants of a sum have come. So none begins before every tower has its
gradient, and the taker of the sum lets all of them run.
"""

import importlib
from typing import Any, List, Sequence, Tuple

from cluster.errors import TaskError
from cluster.runtime.tf_compat import tf
from cluster.stages import Device
from cluster.towers import GradsAndVars, add_gradients

_OPERATION = "NcclAllReduce"
_DTYPES = (tf.float16, tf.float32, tf.float64)  # of those that the operation takes: what gradients have


def refuse_without_nccl(devices: Sequence[str]) -> None:
    """Refuse towers whose gradients NCCL cannot add up in this process.

    Args:
      devices: the first device of each tower: ``["GPU:0", "GPU:1"]``.

    Raises:
      TaskError: TensorFlow has no such operation for GPUs, or there are no two towers on GPUs.
    """
    on_gpus = sum(device.startswith("GPU:") for device in devices)
    if len(devices) < 2 or on_gpus < len(devices):
        raise TaskError(_refused("at least 2 towers, each on a GPU of its own", f"{len(devices)}, {on_gpus} on a GPU"))
    if not has_kernel(_OPERATION):
        raise TaskError(_refused(f"TensorFlow with {_OPERATION} for GPUs", f"{tf.__version__} without it"))


def _refused(expected: str, found: str) -> str:
    return f"train.tower_sum: expected {expected} for nccl, found {found}; leave tower_sum out, or set worker"


def has_kernel(operation: str) -> bool:
    """Return whether this TensorFlow has ``operation`` for GPUs."""
    kernels = importlib.import_module("tensorflow.python.framework.kernels")
    found = kernels.get_registered_kernels_for_op(operation).kernel if hasattr(tf.raw_ops, operation) else ()
    return any(each.device_type == "GPU" for each in found)


def add_gradients_on_gpus(part_grads: Sequence[GradsAndVars], devices: Sequence[Device]) -> GradsAndVars:
    """Return what ``add_gradients`` returns; dense gradients are added up on the towers' GPUs.

    Those of rows, and of other types than NCCL knows, are added up as ``add_gradients`` does it.

    Args:
      part_grads: parts × variables × (gradient, variable); part p is of the tower p modulo the number of towers.
      devices: one of each tower.
    """
    return [_total(row, devices) for row in zip(*part_grads)]


def _total(row: Sequence[Tuple[Any, Any]], devices: Sequence[Device]) -> Any:
    grads, variable = [grad for grad, _ in row], row[0][1]
    if not all(map(_can_be_added, grads)):
        return add_gradients([[pair] for pair in row])[0]
    return _sum(grads, devices, f"tower_sum/{variable.op.name}"), variable


def _can_be_added(grad: Any) -> bool:
    return isinstance(grad, tf.Tensor) and grad.dtype.base_dtype in _DTYPES


def _sum(grads: Sequence[Any], devices: Sequence[Device], name: str) -> Any:
    """Return the sum of gradients of all parts, on the current device."""
    own: List[Any] = []
    for index, device in enumerate(devices):
        with tf.device(device):
            own.append(tf.add_n(grads[index :: len(devices)]))
    ready = tf.group(*own)
    sums = []
    for grad, device in zip(own, devices):
        with tf.device(device), tf.control_dependencies([ready]):
            sums.append(
                tf.raw_ops.NcclAllReduce(input=grad, reduction="sum", num_devices=len(devices), shared_name=name)
            )
    with tf.control_dependencies(sums):
        return tf.identity(sums[0])
