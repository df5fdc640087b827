"""An optimizer that applies the gradients of some variables at a time.

It creates each slot of zeros with two operations instead of six. Names, devices and the place of a slice in a
checkpoint are the same as in TensorFlow.
"""

from typing import Any, Collection, Dict, List, Sequence, Tuple

from cluster.runtime.server_state import declare, variable_of
from cluster.runtime.tf_compat import tf
from cluster.updates.grouped import Grouped
from cluster.variables.uses import sources


class ZeroSlots:
    """Optimizers' slots whose first values are zeros. The slots of one shape on a server share one tensor of zeros."""

    def __init__(self) -> None:
        self._zeros: Dict[Tuple[str, Tuple[int, ...], Any], Any] = {}

    def slot(self, optimizer: Any, variable: Any, kind: str, name: str) -> Any:
        """Return the optimizer's slot of this kind for a variable; create a missing slot.

        The method replaces ``tf.train.Optimizer._zeros_slot`` for reference variables (``use_resource=False``).
        """
        if variable.dtype == variable.dtype.base_dtype:
            return type(optimizer)._zeros_slot(optimizer, variable, kind, name)
        slots = optimizer._slot_dict(kind)
        key = (variable.op.graph, variable.op.name)
        if key not in slots:
            slots[key] = self._make(variable, name)
        return slots[key]

    def _make(self, variable: Any, name: str) -> Any:
        shape, dtype = tuple(variable.shape.as_list()), variable.dtype.base_dtype
        full_name = variable.op.graph.unique_name(f"{variable.op.name}/{name}", mark_as_used=False)
        with tf.device(variable.device):
            held = declare(full_name, shape, dtype)
            with tf.control_dependencies(None):
                first = tf.assign(held, self._zeros_of(variable.device, shape, dtype)).op
        made = variable_of(held, first)
        tf.add_to_collection(tf.GraphKeys.GLOBAL_VARIABLES, made)
        part = variable._get_save_slice_info()
        if part is not None:
            kept = f"{part.full_name}/{full_name[len(variable.op.name) + 1 :]}"
            where = (part.full_shape, part.var_offset, part.var_shape)
            made._set_save_slice_info(tf.Variable.SaveSliceInfo(kept, *map(list, where)))
        return made

    def _zeros_of(self, device: str, shape: Tuple[int, ...], dtype: Any) -> Any:
        if (device, shape, dtype) not in self._zeros:
            zero = tf.constant(0, dtype) if not shape else self._zeros_of(device, (), dtype)
            self._zeros[device, shape, dtype] = tf.fill(shape, zero) if shape else zero
        return self._zeros[device, shape, dtype]


GradsAndVars = Sequence[Tuple[Any, Any]]
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


def is_elementwise(optimizer: Any, changed: Collection[Any] = ()) -> bool:
    """Return whether the optimizer is known to treat each element of a variable by itself.

    The function knows classes of this project, and TensorFlow's own classes but not their subclasses. It does not know
    an optimizer with an attribute that replaces a method of its class.

    Args:
      changed: variables that the model changes in each step. No setting of the optimizer, such as its learning rate,
        may depend on these variables.
    """
    if isinstance(optimizer, Grouped):
        return all(is_elementwise(each, changed) for each in optimizer.parts.values())
    if changed and {each.op for each in changed} & sources(_settings(optimizer)):
        return False
    if getattr(type(optimizer), "works_by_element", False):  # a class of this project
        return True
    return type(optimizer) in _ELEMENTWISE and not any(hasattr(type(optimizer), name) for name in vars(optimizer))


def _settings(optimizer: Any) -> List[Any]:
    """Return those settings of one of TensorFlow's optimizers that are not plain numbers, as tensors."""
    values = [value() if callable(value) else value for value in vars(optimizer).values()]
    return [tf.convert_to_tensor(each) for each in values if tf.is_tensor(each)]


class IncrementalApply:
    """The updates of variables by ``optimizer`` as their gradients arrive, in one step.

    An optimizer updates each variable by itself. Once a step, it then updates state that belongs to no variable (Adam:
    its powers of beta). ``update`` updates some of the variables; ``finish`` updates that state, after all variables.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self._used: List[Any] = []
        self._prepared: Dict[Tuple[int, str], Dict[str, Any]] = {}
        self._updates: List[Any] = []
        self._slots = ZeroSlots()

    @staticmethod
    def supports(optimizer: Any) -> bool:
        """Return whether ``optimizer`` can update some variables at a time.

        An optimizer with an ``apply_gradients`` of its own cannot: the effect of that method is unknown. A ``Grouped``
        can if its parts are elementwise.
        """
        if isinstance(optimizer, Grouped):
            return is_elementwise(optimizer)
        return type(optimizer).apply_gradients is tf.train.Optimizer.apply_gradients

    def update(self, grads_and_vars: GradsAndVars) -> Any:
        """Return the operation that updates these variables, on their servers."""
        shares = (
            self.optimizer.share_out(grads_and_vars)
            if isinstance(self.optimizer, Grouped)
            else [(self.optimizer, list(grads_and_vars))]
        )
        update = _grouped([self._apply(optimizer, pairs) for optimizer, pairs in shares])
        self._updates.append(update)
        return update

    def _apply(self, optimizer: Any, grads_and_vars: GradsAndVars) -> Any:
        if not any(optimizer is each for each in self._used):
            self._used.append(optimizer)
        optimizer._finish = lambda updates, name: _grouped(updates)
        optimizer._prepare = lambda: self._prepare(optimizer, grads_and_vars[0][1].device)
        optimizer._zeros_slot = lambda *of: self._slots.slot(optimizer, *of)
        try:
            return optimizer.apply_gradients(grads_and_vars)
        finally:
            del optimizer._finish, optimizer._prepare, optimizer._zeros_slot  # restores the methods of the class

    def _prepare(self, optimizer: Any, server: str) -> None:
        """Give an optimizer the tensors of its settings, created once on each server and not for each update."""
        made = self._prepared.setdefault((id(optimizer), server), {})
        if not made:
            before = dict(vars(optimizer))
            with tf.control_dependencies(None), tf.device(server):
                type(optimizer)._prepare(optimizer)
            made.update({name: each for name, each in vars(optimizer).items() if before.get(name) is not each})
        vars(optimizer).update(made)

    def finish(self) -> Any:
        """Return the operation that updates the state that belongs to no variable, after every ``update``."""
        updates = tf.group(*self._updates)
        return tf.group(*[each._finish([updates], "finish") for each in self._used])

    def finish_alone(self) -> Any:
        """Return the operation of ``finish`` for a step whose updates have already run."""
        return tf.group(*[each._finish([tf.no_op()], "finish_alone") for each in self._used])


def _grouped(operations: Sequence[Any]) -> Any:
    return operations[0] if len(operations) == 1 else tf.group(*operations)
