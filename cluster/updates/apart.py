"""The update of an optimizer that may look at names, at whole variables, or at all gradients at once.

It is built in a graph of its own, in which there are only the servers' variables, whole and under the author's names;
then that graph becomes part of the worker's, under the scope ``servers/``. So whatever an optimizer finds, asks or
makes is what it finds, asks and makes in one process.

An optimizer's ``compute_gradients`` may do something before TensorFlow's own (scale the loss) and something after it
(clip, freeze by name). The first must be done by each worker, the second with the mean of all gradients. So the worker
takes what TensorFlow's own returns there (``own_gradients``), and here TensorFlow's own returns the mean.
"""

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.errors import JobError
from cluster.runtime.gradients import clipped
from cluster.runtime.tf_compat import tf
from cluster.updates.grouped import Grouped
from cluster.variables.masters import SCOPE, plain_name
from cluster.variables.uses import ancestors

_ELEMENTWISE = (
    tf.train.GradientDescentOptimizer,
    tf.train.MomentumOptimizer,
    tf.train.AdamOptimizer,
    tf.train.AdagradOptimizer,
    tf.train.AdadeltaOptimizer,
    tf.train.RMSPropOptimizer,
    tf.train.FtrlOptimizer,
    tf.train.ProximalAdagradOptimizer,
    tf.train.ProximalGradientDescentOptimizer,
)
_INNER = "apart/"
_ONE_AT_A_TIME = threading.RLock()  # a class has one method for all threads
_OWN = tf.train.Optimizer.compute_gradients


def is_elementwise(optimizer: Any) -> bool:
    """Return whether the optimizer is known to treat each element of a variable by itself.

    Known are TensorFlow's own classes, not their subclasses. An optimizer that was given a method of its own, an
    attribute in place of one of its class, is not known either.
    """
    if isinstance(optimizer, Grouped):
        return all(map(is_elementwise, optimizer.parts.values()))
    return type(optimizer) in _ELEMENTWISE and not any(hasattr(type(optimizer), name) for name in vars(optimizer))


class OwnGradients(NamedTuple):
    """The gradients that TensorFlow's own ``compute_gradients`` returned.

    ``scales``: whether ``compute_gradients`` was given another loss.
    """

    pairs: List[Tuple[Any, Any]]
    scales: bool


def refuse_minimize(optimizer: Any) -> None:
    """Refuse an optimizer that does in ``minimize`` what nobody would call here.

    Raises:
      JobError: it has one of its own.
    """
    if type(optimizer).minimize is not tf.train.Optimizer.minimize:
        raise JobError(
            f"optimizer {type(optimizer).__name__}: expected compute_gradients and apply_gradients to be all that it"
            " does, found a minimize of its own, which is not called; do the same in these two"
        )


def own_gradients(optimizer: Any, loss: Any, variables: Sequence[Any]) -> OwnGradients:
    """Compute the gradients of a loss as ``optimizer`` does, without what it does to them afterwards.

    Returns:
      A (gradient or None, variable) for each of ``variables``, in their order.

    Raises:
      JobError: the optimizer computes gradients in a way of its own.
    """
    found: Dict[str, Any] = {}
    losses: List[Any] = []

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        pairs = _OWN(self, loss, var_list, *args, **kwargs)
        if any(variable.name in found for _, variable in pairs):
            raise JobError(_refused(optimizer, "asks for one variable's gradient more than once"))
        losses.append(loss)
        found.update({variable.name: grad for grad, variable in pairs})
        return pairs

    scope = tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE)  # one set of variables for all towers
    with _in_place_of_own(own), scope:
        optimizer.compute_gradients(loss, list(variables), colocate_gradients_with_ops=True)
    if not losses:
        raise JobError(_refused(optimizer, "does not call tf.train.Optimizer.compute_gradients"))
    return OwnGradients([(found.get(each.name), each) for each in variables], any(each is not loss for each in losses))


def _refused(optimizer: Any, what: str) -> str:
    return (
        f"optimizer {type(optimizer).__name__}: expected a compute_gradients that calls TensorFlow's own once for each"
        f" variable, found one that {what}; change the gradients that super().compute_gradients returns"
    )


@contextlib.contextmanager
def _in_place_of_own(replacement: Callable[..., Any]) -> Iterator[None]:
    with _ONE_AT_A_TIME:
        tf.train.Optimizer.compute_gradients = replacement
        try:
            yield
        finally:
            tf.train.Optimizer.compute_gradients = _OWN


class Spec(NamedTuple):
    """A variable to be made: ``sparse`` says whether its gradient is of rows, None that it has none."""

    mirror: Any
    device: str
    sparse: Any
    is_made: bool = True  # else the optimizer makes it


class Apart:
    """The servers' variables, and the update that ``make`` makes an optimizer for, in the current graph.

    It stands in for the optimizer: ``apply_gradients`` takes the mean gradients.

    Args:
      specs: by name.
      step_device: of the global step, and of what has no other place.
      clip_norm: of all gradients together, as the optimizer would apply them; None does not clip.

    Attributes:
      masters: the variables of ``specs``, by name.
      others: what else the optimizer made: slots and the like.
      global_step: the servers' own.
      is_checked: whether new values must be finite numbers.
    """

    is_checked = False

    def __init__(
        self,
        make: Callable[[], Any],
        specs: Mapping[str, Spec],
        step_device: str,
        container: str = "",
        clip_norm: Any = None,
    ):
        self._specs, self._step_device, self._clip_norm = specs, step_device, clip_norm
        self._made: List[Any] = []
        self._holes: Dict[str, List[str]] = {}
        inner = tf.Graph()
        with inner.as_default(), inner.container(container), tf.variable_creator_scope(self._create):
            step, variables = self._make_variables()
            grads = {name: self._stand_in(name, variable) for name, variable in variables.items()}
            optimizer = make()
            update = self._update(optimizer, grads, variables)
        with tf.control_dependencies(None):
            self._bring_in(inner, step, update)

    def _make_variables(self) -> Tuple[Any, Dict[str, Any]]:
        step = tf.train.get_or_create_global_step()
        return step, {name: self._variable(name, spec) for name, spec in self._specs.items() if spec.is_made}

    @staticmethod
    def _variable(name: str, spec: Spec) -> Any:
        mirror = spec.mirror
        return tf.get_variable(
            name,
            mirror.shape,
            mirror.dtype.base_dtype,
            tf.zeros_initializer() if mirror.dtype.base_dtype != tf.string else None,
            trainable=mirror.trainable,
            constraint=mirror.constraint,
            use_resource=False,
        )

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Note every variable, and place those that say nothing of a place."""
        device = self._device(kwargs.get("name") or "")
        with tf.device(lambda op: op.device or device):
            made = next_creator(**kwargs)
        self._made.append(made)
        return made

    def _device(self, name: str) -> str:
        owners = [each for each in self._specs if name == each or name.startswith(f"{each}/")]
        return self._specs[max(owners, key=len)].device if owners else self._step_device

    def _stand_in(self, name: str, variable: Any) -> Any:
        """Make a stand-in for the mean gradient of a variable; None without a gradient."""
        sparse = self._specs[name].sparse
        if sparse is None:
            return None
        with tf.name_scope(_INNER), tf.device(self._specs[name].device):
            if not sparse:
                return self._hole(name, variable.dtype.base_dtype, variable.shape)
            values = self._hole(name, variable.dtype.base_dtype, [None, *variable.shape.as_list()[1:]])
            rows = self._hole(name, tf.int64, [None])
            return tf.IndexedSlices(values, rows, tf.constant(variable.shape.as_list(), tf.int64))

    def _hole(self, name: str, dtype: Any, shape: Any) -> Any:
        hole = tf.identity(tf.placeholder(dtype, shape))
        self._holes.setdefault(name, []).append(hole.op.name)
        return hole

    def _update(self, optimizer: Any, grads: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
        # What depends on no gradient, such as a decay, waits for all of them too: a step that is
        # given up while it waits has changed nothing.
        ready = [each for grad in grads.values() if grad is not None for each in _tensors(grad)]
        with tf.control_dependencies(ready):
            pairs = clipped(changed(optimizer, grads, variables), self._clip_norm)
        with tf.control_dependencies(ready):
            update = optimizer.apply_gradients(pairs)
        if update is None:
            raise JobError(
                f"optimizer {type(optimizer).__name__}: expected an operation of apply_gradients, found None"
            )
        with tf.name_scope(_INNER):
            return tf.group(update)

    def _bring_in(self, inner: Any, step: Any, update: Any) -> None:
        """Make the inner graph part of the current one."""
        definition = inner.as_graph_def()
        devices = _devices(inner, self._step_device)
        for node in definition.node:
            node.device = devices[node.name]
            if "shared_name" in node.attr and node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{SCOPE}/".encode() + node.attr["shared_name"].s
        tf.import_graph_def(definition, name=f"{SCOPE}/")
        unique = {variable.name: variable for variable in self._made}
        found = {name[:-2]: _again(variable) for name, variable in unique.items()}
        missing = [name for name in self._specs if name not in found]
        if missing:
            raise JobError(
                f"optimizer: expected to make the variable {missing[0]} wherever it is made, found it missing"
            )
        self.global_step = found.pop(step.op.name)
        self.masters = {name: found.pop(name) for name in self._specs}
        self.others = list(found.values())
        self._graph = tf.get_default_graph()
        self.update = self._graph.get_operation_by_name(f"{SCOPE}/{update.name}")

    def apply_gradients(self, grads_and_vars: Sequence[Tuple[Any, Any]]) -> Any:
        """The operation that updates all variables, once their mean gradients are there."""
        for grad, variable in grads_and_vars:
            holes = self._holes[variable.op.name[len(SCOPE) + 1 :]]
            for hole, tensor in zip(holes, _tensors(grad)):
                op = self._graph.get_operation_by_name(f"{SCOPE}/{hole}")
                with tf.device(op.device):
                    op._update_input(0, tf.cast(tensor, op.inputs[0].dtype))
        return self.update if not self.is_checked else tf.group(*[_checked(v, self.update) for _, v in grads_and_vars])


def changed(optimizer: Any, grads: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return what an optimizer makes of the mean gradients before it applies them, as (gradient, variable) pairs.

    Args:
      grads: the mean gradients by name.
      variables: by name.

    Raises:
      JobError: it uses the loss itself.
    """
    names = {variable.name: name for name, variable in variables.items()}
    trained = [variable for variable in variables.values() if variable.trainable]

    def own(self: Any, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        return [(grads[names[each.name]], each) for each in (trained if var_list is None else var_list)]

    with tf.name_scope(_INNER):
        loss = tf.placeholder(tf.float32, [])
    with _in_place_of_own(own):
        pairs = list(optimizer.compute_gradients(loss, trained))
    needed = ancestors([grad for grad, _ in pairs])
    if loss.op in needed:
        raise JobError(_refused(optimizer, "uses the loss for more than its gradient"))
    return pairs


def _checked(variable: Any, update: Any) -> Any:
    with tf.device(variable.device), tf.control_dependencies([update]):
        total = tf.reduce_sum(variable.read_value())
        return tf.debugging.check_numerics(total, f"the new value of {plain_name(variable)} is not a finite number")


def _again(variable: Any) -> Any:
    """The Python object of a variable whose graph became part of the current one."""
    return type(variable).from_proto(variable.to_proto(), import_scope=SCOPE)


def _tensors(grad: Any) -> List[Any]:
    return [grad.values, grad.indices] if isinstance(grad, tf.IndexedSlices) else [grad]


def _devices(graph: Any, default: str) -> Dict[str, str]:
    """A device for every operation: its own, that of what it is colocated with, or of its largest input."""
    found: Dict[str, str] = {}
    for op in graph.get_operations():
        together = [found.get(group.decode()[len("loc:@") :], "") for group in op.colocation_groups()]
        inputs = [each for each in op.inputs if found.get(each.op.name)]
        largest = [found[max(inputs, key=_elements).op.name]] if inputs else []
        known: List[str] = [op.device, *together, *largest]
        found[op.name] = next(filter(None, known), default)
    return found


def _elements(tensor: Any) -> int:
    return tensor.shape.num_elements() or -1
