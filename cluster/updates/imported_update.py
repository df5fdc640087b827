"""The update of an optimizer that may read names, whole variables, or all gradients at once.

The update is built in a separate graph. That graph has only the servers' variables, whole and under the author's names.
The graph is then imported into the worker's graph, under the scope ``servers/``. So an optimizer finds and creates
exactly the same as in one process.

In collections the optimizer also finds the model's entries:

a variable of the model   the servers' variable of that name
a tensor or an operation  a placeholder without a value; an update that needs it is refused
anything else             the entry itself
"""

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from cluster.errors import JobError
from cluster.runtime.gradients import clip
from cluster.runtime.tf_compat import tf
from cluster.sharing import graph_collections
from cluster.updates.counted_step import CountedStep, applied
from cluster.updates.nan_guard import NOT_FINITE
from cluster.updates.optimizer_gradients import INNER_SCOPE, changed_gradients, described
from cluster.variables.masters import SCOPE, plain_name
from cluster.variables.uses import ancestors, replace

_RUN_BESIDE = tf.GraphKeys.UPDATE_OPS  # the workers run these updates; the servers' update does not wait for them


class ModelCollections:
    """The entries of the model's collections, added to the collections of the current graph.

    Args:
      entries: the entries of collections in the model's graph, by the name of the collection.
      variables: the variables of the current graph, by the author's names.
      scope: a name scope for placeholders.
    """

    def __init__(self, entries: Mapping[str, Sequence[Any]], variables: Mapping[str, Any], scope: str):
        self._variables = variables
        self._stand_ins: Dict[str, List[Any]] = {}
        with tf.name_scope(scope), tf.control_dependencies(None):
            for name, found in entries.items():
                if name != _RUN_BESIDE:
                    tf.get_collection_ref(name).extend([self._entry(name, each) for each in found])

    def _entry(self, name: str, entry: Any) -> Any:
        is_operation = isinstance(entry, tf.Operation)
        if not (is_operation or tf.is_tensor(entry)):
            return entry
        if hasattr(entry, "read_value") and entry.op.name in self._variables:
            return self._variables[entry.op.name]
        made = tf.placeholder(tf.bool) if is_operation else tf.placeholder(entry.dtype.base_dtype, entry.shape)
        self._stand_ins.setdefault(name, []).append(made)
        return made

    def refuse_needed(self, update: Any, who: str) -> None:
        """Refuse ``update`` if it needs an entry of the model's collections that has no value on the servers.

        Args:
          who: the optimizer, with the place of its ``apply_gradients``, for the error.

        Raises:
          JobError: the update needs such an entry.
        """
        needed = ancestors([update])
        for name, found in self._stand_ins.items():
            if any(each.op in needed for each in found):
                raise JobError(
                    f"{who}: expected an apply_gradients that needs only gradients and variables, found one that needs"
                    f" the model's entries of the collection {name!r}, which are on the workers; put operations into"
                    " tf.GraphKeys.UPDATE_OPS, and terms into the loss that model returns"
                )


class VariableSpec(NamedTuple):
    """A variable to create on the server ``device``, with the shape, type and constraint of the worker's ``mirror``.

    ``sparse``: whether its gradient is sparse; None without a gradient.
    """

    mirror: Any
    device: str
    sparse: Any
    is_made: bool = True  # otherwise the optimizer creates it


class ImportedUpdate:
    """The servers' variables, and the update by the optimizer that ``make`` returns, in the current graph.

    The object replaces the optimizer: ``apply_gradients`` takes the mean gradients.

    Args:
      specs: the variables by name.
      step_device: the device of the global step, and of operations without another device.
      clip_norm: the largest norm of all gradients together, as the optimizer would apply them; None does not clip.
      changing: names of variables that the model changes itself. An update that reads such a variable, for example a
        learning rate, reads the value after the change in the same step, as in one process.
      collections: the entries of the model in collections of its graph, by name.
      scopes: how often the model has opened each variable scope.

    Attributes:
      masters: the variables of ``specs``, by name.
      others: the other variables that the optimizer created, such as slots.
      global_step: the servers' own global step.
      is_checked: whether new values must be finite numbers.
      reads_changing: whether the update reads one of the variables ``changing``.
      may_leave_out: whether the optimizer counts a step only under a condition; here every step counts.
      publish: creates the operation for which the update must wait if it reads a variable of ``changing``; with None,
        the update waits only for gradients.
    """

    is_checked = False
    publish: Optional[Callable[[], Any]] = None

    def __init__(
        self,
        make: Callable[[], Any],
        specs: Mapping[str, VariableSpec],
        step_device: str,
        container: str = "",
        clip_norm: Any = None,
        changing: Sequence[str] = (),
        collections: Optional[Mapping[str, Sequence[Any]]] = None,
        scopes: Optional[Mapping[str, int]] = None,
    ):
        self._specs, self._step_device, self._clip_norm = specs, step_device, clip_norm
        self._made: List[Any] = []
        self._holes: Dict[str, List[str]] = {}
        inner = tf.Graph()
        with inner.as_default(), inner.container(container), tf.variable_creator_scope(self._create):
            step, variables = self._make_variables()
            graph_collections.count_scopes_from(scopes or {})
            counted = CountedStep(step, f"{INNER_SCOPE}global_step")
            found = ModelCollections(collections or {}, variables, INNER_SCOPE)
            grads = {name: self._stand_in(name, variable) for name, variable in variables.items()}
            optimizer = make()
            update = self._update(optimizer, grads, variables, counted.variable)
            late = [_read_late(variables[name], ancestors([update]), _ready(grads)) for name in changing]
            self.reads_changing = any(late)
            self.may_leave_out = counted.settle(optimizer)
            found.refuse_needed(update, described(optimizer, "apply_gradients"))
        with tf.control_dependencies(None):
            self._bring_in(inner, step, counted.variable, update)

    def _make_variables(self) -> Tuple[Any, Dict[str, Any]]:
        step = tf.train.get_or_create_global_step()
        return step, {name: self._variable(name, spec) for name, spec in self._specs.items() if spec.is_made}

    @staticmethod
    def _variable(name: str, spec: VariableSpec) -> Any:
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
        """Create a variable: note it, and place it if it has no device."""
        device = self._device(kwargs.get("name") or "")
        with tf.device(lambda op: op.device or device):
            made = next_creator(**kwargs)
        self._made.append(made)
        return made

    def _device(self, name: str) -> str:
        owners = [each for each in self._specs if name == each or name.startswith(f"{each}/")]
        return self._specs[max(owners, key=len)].device if owners else self._step_device

    def _stand_in(self, name: str, variable: Any) -> Any:
        """Return a placeholder for the mean gradient of a variable; None without a gradient."""
        sparse = self._specs[name].sparse
        if sparse is None:
            return None
        with tf.name_scope(INNER_SCOPE), tf.device(self._specs[name].device):
            if not sparse:
                return self._hole(name, variable.dtype.base_dtype, variable.shape)
            values = self._hole(name, variable.dtype.base_dtype, [None, *variable.shape.as_list()[1:]])
            rows = self._hole(name, tf.int64, [None])
            return tf.IndexedSlices(values, rows, tf.constant(variable.shape.as_list(), tf.int64))

    def _hole(self, name: str, dtype: Any, shape: Any) -> Any:
        hole = tf.identity(tf.placeholder(dtype, shape))
        self._holes.setdefault(name, []).append(hole.op.name)
        return hole

    def _update(self, optimizer: Any, grads: Mapping[str, Any], variables: Mapping[str, Any], step: Any) -> Any:
        # Operations that depend on no gradient, such as a decay, also wait for all gradients: a step that is given up
        # while it waits has changed nothing.
        ready = _ready(grads)
        with tf.control_dependencies(ready):
            pairs = clip(changed_gradients(optimizer, grads, variables), self._clip_norm)
        with tf.control_dependencies(ready):
            update = applied(optimizer, pairs, step)
        if update is None:
            raise JobError(
                f"optimizer {type(optimizer).__name__}: expected apply_gradients to return an operation, found None"
            )
        with tf.name_scope(INNER_SCOPE):
            return tf.group(update)

    def _bring_in(self, inner: Any, step: Any, counted: Any, update: Any) -> None:
        """Import the inner graph into the current graph."""
        definition = inner.as_graph_def()
        devices = _devices(inner, self._step_device)
        for node in definition.node:
            node.device = devices[node.name]
            if "shared_name" in node.attr and node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{SCOPE}/".encode() + node.attr["shared_name"].s
        tf.import_graph_def(definition, name=f"{SCOPE}/")
        unique = {variable.name: variable for variable in self._made}
        found = {name[:-2]: _imported(variable) for name, variable in unique.items()}
        missing = [name for name in self._specs if name not in found]
        if missing:
            raise JobError(
                f"optimizer: expected it to create the variable {missing[0]} in every graph, found none in one graph"
            )
        self.global_step = found.pop(step.op.name)
        found.pop(counted.op.name)  # has no value of its own between two steps
        self.masters = {name: found.pop(name) for name in self._specs}
        self.others = list(found.values())
        self._graph = tf.get_default_graph()
        self.update = self._graph.get_operation_by_name(f"{SCOPE}/{update.name}")

    def apply_gradients(self, grads_and_vars: Sequence[Tuple[Any, Any]]) -> Any:
        """Return the operation that updates all variables, once their mean gradients have arrived."""
        published = self._published([grad for grad, _ in grads_and_vars])
        for grad, variable in grads_and_vars:
            holes = self._holes[variable.op.name[len(SCOPE) + 1 :]]
            for hole, tensor in zip(holes, _tensors(grad)):
                op = self._graph.get_operation_by_name(f"{SCOPE}/{hole}")
                with tf.device(op.device):
                    op._update_input(0, tf.cast(tensor, op.inputs[0].dtype))
                    op._add_control_inputs(published)
        return self.update if not self.is_checked else tf.group(*[_checked(v, self.update) for _, v in grads_and_vars])

    def _published(self, grads: Sequence[Any]) -> List[Any]:
        """Return the update's inputs other than gradients: the variables that the model has changed in the step."""
        if self.publish is None:
            return []
        with tf.control_dependencies([each for grad in grads for each in _tensors(grad)]):
            return [self.publish()]


def _ready(grads: Mapping[str, Any]) -> List[Any]:
    return [each for grad in grads.values() if grad is not None for each in _tensors(grad)]


def _read_late(variable: Any, update: Set[Any], ready: Sequence[Any]) -> bool:
    """Let the operations of an update read a variable only after ``ready``; return whether any operation reads it."""
    (read,) = [op for op in variable.op.outputs[0].consumers() if op.outputs and op.outputs[0] is variable.value()]
    users = [op for op in read.outputs[0].consumers() if op in update]
    direct = [op for op in variable.op.outputs[0].consumers() if op in update and op is not read]
    for op in direct:
        op._add_control_inputs([each.op for each in ready])
    if users:
        with tf.control_dependencies(ready):
            replace(read.outputs[0], variable.read_value(), set(users))
    return bool(users or direct)


def _checked(variable: Any, update: Any) -> Any:
    with tf.device(variable.device), tf.control_dependencies([update]):
        total = tf.reduce_sum(variable.read_value())
        return tf.debugging.check_numerics(total, f"the new value of {plain_name(variable)} {NOT_FINITE}")


def _imported(variable: Any) -> Any:
    """Return the Python object of a variable whose graph was imported into the current graph."""
    return type(variable).from_proto(variable.to_proto(), import_scope=SCOPE)


def _tensors(grad: Any) -> List[Any]:
    return [grad.values, grad.indices] if isinstance(grad, tf.IndexedSlices) else [grad]


def _devices(graph: Any, default: str) -> Dict[str, str]:
    """Return a device for every operation: its own, that of its colocation, or that of its largest input."""
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
