"""Several devices of one worker: a tower on each, one set of variables.

A *tower* is a copy of the model on one device that takes an equal share of the worker's
batch. All towers read the same variables; their gradients are averaged on the worker, so
that however many towers there are, a variable travels once to the worker and a gradient
once back.
"""

from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

from cluster.accumulators import merge_rows
from cluster.engine import tf
from cluster.stages import Device, tower_on

Devices = Union[Device, Sequence[Device]]  # of one tower: one, or one for each of its stages
GradsAndVars = List[Tuple[Any, Any]]


def available_gpus() -> List[str]:
    """Names of the GPUs that this process sees, ``["/device:GPU:0", …]``.

    Asks for the physical devices: listing the logical ones would take their memory.
    """
    found = tf.config.experimental.list_physical_devices("GPU")
    return [f"/device:GPU:{index}" for index in range(len(found))]


def device_names(number: int) -> List[str]:
    """Names of ``number`` devices: GPUs where there are any, else as many CPU devices.

    A process has one CPU device unless its session or server is configured with
    ``tf.ConfigProto(device_count={"CPU": number})``.
    """
    kind = "GPU" if available_gpus() else "CPU"
    return [f"/device:{kind}:{index}" for index in range(number)]


def make_parallel(fn: Callable[..., Any], devices: Union[int, Sequence[Devices]], **batch: Any) -> Any:
    """Runs ``fn`` on every device, each on an equal part of the batch, with shared variables.

    Gradients of what it returns are computed on the towers' devices if the optimizer is
    called with ``colocate_gradients_with_ops=True``.

    Args:
      fn: takes tensors, or structures of them, by name and returns a tensor, or a structure
        of tensors, of shape [batch, …]. It makes variables with ``tf.get_variable``.
      devices: a number, or what ``tf.device`` takes for each tower: GPUs, CPU devices in
        their place, or devices of other tasks (``/job:worker/task:1/device:GPU:0``). A tower
        may have a list of devices for the stages of its model; see ``cluster.stages``.
      **batch: tensors of shape [batch, …]; batch must be a multiple of the towers.

    Returns:
      What ``fn`` would return for the whole batch.

    Raises:
      ValueError: the batch does not divide among the towers, or ``fn`` made variables
        that the towers would not share.
    """
    towers = device_names(devices) if isinstance(devices, int) else devices
    outputs = tower_outputs(fn, towers, batch)
    return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *outputs)


def tower_outputs(fn: Callable[..., Any], devices: Sequence[Devices], batch: Dict[str, Any]) -> List[Any]:
    """What ``fn`` returns on each device for its part of ``batch``; see ``make_parallel``."""
    return outputs_of(fn, devices, split_batch(batch, len(devices)))


def outputs_of(fn: Callable[..., Any], devices: Sequence[Devices], parts: Sequence[Dict[str, Any]]) -> List[Any]:
    """What ``fn`` returns on each device for the part of the batch that is already that tower's."""
    outputs = []
    for index, (device, part) in enumerate(zip(devices, parts)):
        known = len(tf.global_variables())
        # The first tower makes the variables, or finds them as the caller's scope says; the rest reuse.
        scope = tf.variable_scope(tf.get_variable_scope(), reuse=index > 0)
        with tower_on(stages_of(device)), scope, tf.name_scope(f"tower_{index}"):
            outputs.append(fn(**part))
        if index > 0:
            refuse_new_variables(f"tower {index}", known)
    return outputs


def stages_of(devices: Devices) -> Sequence[Device]:
    """The devices of one tower as a list, which holds one for a model without stages."""
    return [devices] if isinstance(devices, str) or callable(devices) else devices


class NotShared(ValueError):
    """A copy of the model made variables of its own. ``op`` is the first one's operation."""

    def __init__(self, text: str, op: Any):
        super().__init__(text)
        self.op = op


def refuse_new_variables(who: str, known: int) -> None:
    """Refuses a copy of the model that made variables beyond the ``known`` first ones of the graph.

    Raises:
      NotShared: it did.
    """
    variables = tf.global_variables()[known:]
    if variables:
        names = ", ".join(variable.op.name for variable in variables)
        raise NotShared(
            f"{who} made variables of its own ({names}), expected the first tower's to be shared;"
            " make variables with tf.get_variable, not tf.Variable",
            variables[0].op,
        )


def split_batch(batch: Dict[str, Any], towers: int) -> List[Dict[str, Any]]:
    """The equal part of every tensor in ``batch``, which may be nested, for each of the towers.

    Raises:
      ValueError: a batch of known size does not divide. One whose size is known only when
        it runs fails then, with ``tf.errors.InvalidArgumentError`` and the same words.
    """
    if towers == 1:
        return [batch]
    names = [name for name in sorted(batch) for _ in tf.nest.flatten(batch[name])]  # the order of tf.nest
    splits = [tf.split(_divisible(name, value, towers), towers) for name, value in zip(names, tf.nest.flatten(batch))]
    return [tf.nest.pack_sequence_as(batch, [parts[index] for parts in splits]) for index in range(towers)]


def _divisible(name: str, value: Any, towers: int) -> Any:
    value = tf.convert_to_tensor(value)
    size = value.shape[:1].num_elements() if value.shape.ndims else None
    message = f"{name}: expected a batch that divides among {towers} towers"
    if size is None:
        check = tf.assert_equal(tf.shape(value)[0] % towers, 0, data=[f"{message}, found", tf.shape(value)])
        with tf.control_dependencies([check]):
            return tf.identity(value)
    if size % towers:
        raise ValueError(f"{message}, found {size} examples; take a multiple of {towers}")
    return value


def tower_gradients(
    optimizer: Any,
    losses: Sequence[Any],
    variables: Sequence[Any],
    devices: Sequence[Devices],
) -> List[GradsAndVars]:
    """Gradients of each tower's mean loss, computed on the tower's device.

    Args:
      variables: or the tensors that the losses were computed with in their place.

    Returns:
      A list of towers × variables × (gradient, variable).
    """
    gradients = []
    for loss, device in zip(losses, devices):
        with tf.device(stages_of(device)[0]):
            found = optimizer.compute_gradients(tf.reduce_mean(loss), variables, colocate_gradients_with_ops=True)
        gradients.append([(grad, variable) for (grad, _), variable in zip(found, variables)])
    return gradients


def average_gradients(tower_grads: Sequence[GradsAndVars]) -> GradsAndVars:
    """The mean over the towers of each variable's gradient, on the current device.

    Equals the gradient of the mean loss of the whole batch, as all towers take equal parts.

    Args:
      tower_grads: towers × variables × (gradient, variable).

    Returns:
      variables × (gradient, variable); the gradient is None where no tower has one.
    """
    return [(_average([grad for grad, _ in row]), row[0][1]) for row in zip(*tower_grads)]


def _average(grads: Sequence[Any]) -> Any:
    present = [grad for grad in grads if grad is not None]
    if len(grads) == 1 or not present:
        return grads[0]
    if all(isinstance(grad, tf.IndexedSlices) for grad in present):
        values = tf.concat([grad.values for grad in present], 0) / len(grads)
        indices = tf.concat([grad.indices for grad in present], 0)
        return merge_rows(tf.IndexedSlices(values, indices, present[0].dense_shape))
    return tf.add_n([tf.convert_to_tensor(grad) for grad in present]) / len(grads)
