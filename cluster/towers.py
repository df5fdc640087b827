"""Several devices of one worker: a tower on each, one set of variables.

A *tower* is a copy of the model on one device that takes an equal share of the worker's batch. All towers read the same
variables; the worker sums their gradients. So a variable is sent once to the worker, and a gradient once back, whatever
the number of towers.
"""

import re
from itertools import zip_longest
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from cluster.runtime.devices import available_gpus as available_gpus
from cluster.runtime.devices import device_names as device_names
from cluster.runtime.gradients import map_values, merge_rows
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import NotShared as NotShared
from cluster.sharing.variables import Sharing
from cluster.sharing.variables import refuse_new_variables as refuse_new_variables
from cluster.stages import Device, tower_on

Devices = Union[Device, Sequence[Device]]  # of one tower: one device, or one for each of its stages
GradsAndVars = List[Tuple[Any, Any]]
_INDIVISIBLE = re.compile(r"\[([^\[\]]*: expected a batch that divides among \d+ towers, found)\] \[(\d+)")


def make_parallel(fn: Callable[..., Any], devices: Union[int, Sequence[Devices]], **batch: Any) -> Any:
    """Run one copy of ``fn`` on each device, for an equal part of the batch; all copies share their variables.

    Gradients of the result are computed on the towers' devices if the optimizer is called with
    ``colocate_gradients_with_ops=True``.

    Args:
      fn: takes tensors, or structures of tensors, by name and returns a tensor, or a structure of tensors, of shape
        [batch, …]. ``fn`` creates the same variables in each call.
      devices: the number of towers, or an argument of ``tf.device`` for each tower, such as ``/device:GPU:0``. A number
        takes the first GPUs, or as many CPU devices if the process sees no GPU. A device may belong to another task
        (``/job:worker/task:1/device:GPU:0``). A tower may have a list of devices for the stages of its model; see
        ``cluster.stages``.
      **batch: tensors of shape [batch, …], also sparse and ragged ones, or structures of tensors. The size of the batch
        must be a multiple of the number of towers.

    Returns:
      The result of ``fn`` for the whole batch.

    Raises:
      ValueError: the batch does not divide among the towers, or ``fn`` created variables that the towers would not
        share.
    """
    towers = device_names(devices) if isinstance(devices, int) else devices
    outputs = tower_outputs(fn, towers, batch)
    return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *outputs)


def tower_outputs(fn: Callable[..., Any], devices: Sequence[Devices], batch: Dict[str, Any]) -> List[Any]:
    """Return, for each of ``devices``, the result of ``fn`` for its part of ``batch``; see ``make_parallel``."""
    return outputs_of(fn, devices, split_batch(batch, len(devices)), training=None)


def outputs_of(
    fn: Callable[..., Any],
    devices: Sequence[Devices],
    parts: Sequence[Dict[str, Any]],
    sharing: Optional[Sharing] = None,
    training: Optional[bool] = True,
) -> List[Any]:
    """Return, for each of ``devices``, the result of ``fn`` for the part of the batch with the same index in ``parts``.

    Args:
      sharing: the variables that the towers share; a later copy of the model in this graph may also share them. With
        None, the towers share new variables.
      training: see ``Sharing.call``.
    """
    sharing, outputs = sharing or Sharing(), []
    for index, (device, part) in enumerate(zip(devices, parts)):
        with tower_on(stages_of(device)):
            outputs.append(sharing.call(fn, part, f"tower_{index}", f"tower {index}", training))
    return outputs


def stages_of(devices: Devices) -> Sequence[Device]:
    """Return ``devices``, the devices of one tower, as a list; a model without stages has one device."""
    return [devices] if isinstance(devices, str) or callable(devices) else devices


def split_batch(batch: Dict[str, Any], towers: int) -> List[Dict[str, Any]]:
    """Return a part of ``batch`` for each of the towers, with an equal part of every tensor.

    The values in ``batch`` may be nested structures of tensors. Sparse and ragged tensors are also split along their
    first axis.

    Raises:
      ValueError: a batch of known size does not divide among the towers. If the size is known only when the batch runs,
        the step fails instead, with ``tf.errors.InvalidArgumentError`` and the same message.
    """
    if towers == 1:
        return [batch]
    names = [name for name in sorted(batch) for _ in tf.nest.flatten(batch[name])]  # the order of tf.nest
    splits = [_split(name, value, towers) for name, value in zip(names, tf.nest.flatten(batch))]
    return [tf.nest.pack_sequence_as(batch, [parts[index] for parts in splits]) for index in range(towers)]


def _split(name: str, value: Any, towers: int) -> Sequence[Any]:
    if isinstance(value, tf.SparseTensor):
        return _split_sparse(name, value, towers)
    if isinstance(value, tf.RaggedTensor):
        return _split_ragged(name, value, towers)
    value = tf.convert_to_tensor(value)
    size = value.shape[:1].num_elements() if value.shape.ndims else None
    checks = _checks(name, size, tf.shape(value), towers)
    with tf.control_dependencies(checks):
        parts: Sequence[Any] = tf.split(tf.identity(value) if checks else value, towers)
    return parts


def _split_sparse(name: str, value: Any, towers: int) -> Sequence[Any]:
    known = value.shape.as_list() if value.shape.ndims is not None else [None]
    with tf.control_dependencies(_checks(name, known[0], value.dense_shape, towers)):
        shape = tf.identity(value.dense_shape)
    whole = tf.SparseTensor(value.indices, value.values, shape)
    parts: Sequence[Any] = tf.sparse.split(sp_input=whole, num_split=towers, axis=0)
    if value.shape.ndims is None:
        return parts
    # A layer needs to know as much about the shape of a part as about that of the whole.
    rows = shape[0] // towers if known[0] is None else known[0] // towers
    sizes = [rows, *(shape[axis] if size is None else size for axis, size in enumerate(known) if axis)]
    sizes = tf.stack([tf.cast(size, tf.int64) for size in sizes])
    return [tf.SparseTensor(part.indices, part.values, sizes) for part in parts]


def _split_ragged(name: str, value: Any, towers: int) -> Sequence[Any]:
    size = value.shape.as_list()[0]
    with tf.control_dependencies(_checks(name, size, tf.expand_dims(value.nrows(), 0), towers)):
        rows = tf.identity(value.nrows()) // towers if size is None else size // towers
    return [value[index * rows : (index + 1) * rows] for index in range(towers)]


def _checks(name: str, size: Optional[int], shape: Any, towers: int) -> List[Any]:
    """Return the checks to run before a batch is split; none for a known ``size``.

    Raises:
      ValueError: the known ``size`` does not divide among the towers.
    """
    message = f"{name}: expected a batch that divides among {towers} towers"
    if size is None:
        remainder = tf.cast(shape[0], tf.int64) % towers
        return [tf.assert_equal(remainder, tf.zeros_like(remainder), data=[f"{message}, found", shape])]
    if size % towers:
        raise ValueError(f"{message}, found {size} examples; take a multiple of {towers}")
    return []


def indivisible(error: Any) -> Optional[str]:
    """Return a message for ``error``, raised by a session, if a batch did not divide among the towers; else None."""
    found = _INDIVISIBLE.search(str(error.message))
    return f"{found[1]} {found[2]} examples; batch with drop_remainder=True" if found else None


def add_gradients(tower_grads: Sequence[GradsAndVars]) -> GradsAndVars:
    """Return the sum over the towers of each variable's gradient, on the current device.

    The result is the gradient of the sum of the towers' losses.

    Args:
      tower_grads: towers × variables × (gradient, variable).

    Returns:
      variables × (gradient, variable); the gradient is None where no tower has one.
    """
    return [(_added([grad for grad, _ in row]), row[0][1]) for row in zip(*tower_grads)]


def average_gradients(tower_grads: Sequence[GradsAndVars]) -> GradsAndVars:
    """Return the mean over the towers of each variable's gradient, on the current device.

    The result is the gradient of the mean of the towers' losses. The function is for training loops that authors write
    by hand. This project's own loop adds weighted gradients instead (``add_gradients``).

    Args:
      tower_grads: towers × variables × (gradient, variable), as each tower's ``compute_gradients`` returns them.

    Returns:
      variables × (gradient, variable). A tower without a gradient counts as a tower with zeros; the gradient is None
      where no tower has one. The gradient is sparse (``tf.IndexedSlices``) where all gradients are.

    Raises:
      ValueError: towers have gradients of different variables, or in different orders.
    """
    for row in zip_longest(*tower_grads, fillvalue=(None, None)):
        if any(variable is not row[0][1] for _, variable in row):
            names = ", ".join("none" if variable is None else variable.name for _, variable in row)
            raise ValueError(
                f"expected gradients of one variable from all towers, found {names}; share variables by reuse, and give"
                " each compute_gradients the same var_list"
            )
    number = len(tower_grads)
    sums = add_gradients(tower_grads)
    return [(map_values(total, lambda values: values / number), variable) for total, variable in sums]


def _added(grads: Sequence[Any]) -> Any:
    present = [grad for grad in grads if grad is not None]
    if len(grads) == 1 or not present:
        return grads[0]
    if all(isinstance(grad, tf.IndexedSlices) for grad in present):
        values = tf.concat([grad.values for grad in present], 0)
        indices = tf.concat([grad.indices for grad in present], 0)
        return merge_rows(tf.IndexedSlices(values, indices, present[0].dense_shape))
    return tf.add_n([tf.convert_to_tensor(grad) for grad in present])
