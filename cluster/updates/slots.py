"""Make an optimizer's slots that begin with zeros: two operations each, and not six.

Names, places and what a checkpoint makes of a part of a variable are as TensorFlow has them.
"""

from typing import Any, Dict, Tuple

from cluster.runtime.declared import declare, variable_of
from cluster.runtime.tf_compat import tf


class ZeroSlots:
    """Make slots; make the zeros of one shape once on each server."""

    def __init__(self) -> None:
        self._zeros: Dict[Tuple[str, Tuple[int, ...], Any], Any] = {}

    def slot(self, optimizer: Any, variable: Any, kind: str, name: str) -> Any:
        """Return what ``optimizer`` keeps of this kind for a variable, made if it is not there.

        This is ``tf.train.Optimizer._zeros_slot``, for variables that hand out their memory (``use_resource=False``).
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
