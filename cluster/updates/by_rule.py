"""Optimizers that are written as one rule: from the gradient, the value and the slots of elements to their new values.

The same rule updates variables, slices of variables, and rows of embedding tables.
"""

import copy
from abc import abstractmethod
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Tuple

import numpy as np

from cluster.errors import JobError
from cluster.runtime.server_state import copied
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import plain_name

Slots = Dict[str, Any]


class ByRule(tf.train.Optimizer):  # type: ignore[misc]
    """An optimizer whose class has a rule for elements.

        class Signs(optimizers.ByRule):
            slots = {"mean": 0.0}                          # first values, by the names of the slots

            def update(self, number, grad, value, slots):
                mean = 0.9 * slots["mean"] + 0.1 * grad
                return value - 0.001 * tf.sign(mean), {"mean": mean}

    The new value of an element may depend on the gradient, value and slots of this element alone, and on ``number``.
    With ``by_row`` it may depend on the other elements of its row, too.

    Attributes:
      slots: the first value of each slot, by name.
      by_row: whether all tensors are whole rows of an embedding table, [rows, width]. Then other variables are refused.

    Raises:
      JobError: at the first update, where the rule mixes elements (with ``by_row``, rows), or returns other slots than
        it got.
    """

    works_by_element = True
    by_row = False
    is_tried = False  # whether the rule was found to treat each element, or row, by itself
    slots: Mapping[str, float] = MappingProxyType({})

    def __init__(self, name: str = ""):
        super().__init__(use_locking=False, name=name or type(self).__name__)

    @abstractmethod
    def update(self, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
        """Return the new value of each element, and its new slots by name.

        Args:
          number: the number of the update, from 1 on, a scalar.
          grad, value: tensors of one shape, which may be that of any part of a variable. All tensors are float32, or
            float64 for a variable of this type.
          slots: tensors of the same shape, by the names of ``slots``.
        """

    def _create_slots(self, var_list: List[Any]) -> None:
        first = min(var_list, key=lambda each: each.name)
        self._create_non_slot_variable(initial_value=tf.zeros([], tf.int64), name="updates", colocate_with=first)
        for variable in var_list:
            for name, value in self.slots.items():
                if value:
                    made = tf.constant_initializer(value)
                    self._get_or_make_slot_with_initializer(
                        variable, made, variable.shape, variable.dtype.base_dtype, name, name
                    )
                else:
                    self._zeros_slot(variable, name, name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        expected = "only embedding tables, and another optimizer for other variables"
        refuse(self, expected, f"the variable {plain_name(var)}", not self.by_row)
        held = {name: self.get_slot(var, name) for name in self.slots}
        stored = var.dtype.base_dtype
        of = tf.float64 if stored == tf.float64 else tf.float32
        before = {name: tf.cast(copied(each), of) for name, each in held.items()}
        value, slots = updated(self, self._number(of), tf.cast(grad, of), tf.cast(copied(var), of), before)
        new = [(var, tf.cast(value, stored)), *((held[name], tf.cast(each, stored)) for name, each in slots.items())]
        with tf.control_dependencies([value for _, value in new]):
            return tf.group(*[tf.assign(*each) for each in new])

    _resource_apply_dense = _apply_dense

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        dense = tf.IndexedSlices(grad, indices, tf.shape(handle, out_type=indices.dtype))
        return self._apply_dense(tf.convert_to_tensor(dense), handle)

    def _number(self, dtype: Any) -> Any:
        count = self._get_non_slot_variable("updates", graph=tf.get_default_graph())
        return tf.cast(count.read_value() + 1, dtype)

    def _finish(self, update_ops: List[Any], name_scope: str) -> Any:
        count = self._get_non_slot_variable("updates", graph=tf.get_default_graph())
        with tf.control_dependencies(update_ops), tf.device(count.device):
            return tf.group(*update_ops, tf.assign_add(count, tf.ones([], tf.int64)), name=name_scope)


def updated(optimizer: ByRule, number: Any, grad: Any, value: Any, slots: Slots) -> Tuple[Any, Slots]:
    """Return what the rule of ``optimizer`` makes of elements.

    Raises:
      JobError: the rule mixes elements, or returns other slots than it got.
    """
    _refuse_mixing(optimizer, int(value.shape[-1]) if optimizer.by_row else 4)
    new_value, new_slots = _pair(optimizer, optimizer.update(number, grad, value, slots))
    refuse(optimizer, f"slots {sorted(optimizer.slots)}", sorted(new_slots), set(new_slots) == set(optimizer.slots))
    return new_value, new_slots


def _refuse_mixing(optimizer: ByRule, width: int) -> None:
    """Apply the rule to drawn elements or rows together, and to each alone, in a graph that is then discarded.

    Tensors and functions among the optimizer's attributes, such as a learning rate, are a number there.
    """
    if optimizer.is_tried:
        return
    stand_in = copy.copy(optimizer)
    for name, each in list(vars(optimizer).items()):
        if callable(each) or tf.is_tensor(each):
            setattr(stand_in, name, 0.1)
    random = np.random.RandomState(0)
    columns = [random.uniform(0.5, 2.0, [3, width]).astype(np.float32) for _ in range(2 + len(optimizer.slots))]

    def result(*of: np.ndarray) -> List[np.ndarray]:
        grad, value, *kept = (tf.constant(each) for each in of)
        made, slots = _pair(optimizer, stand_in.update(tf.constant(3.0), grad, value, dict(zip(optimizer.slots, kept))))
        names = [name for name in optimizer.slots if name in slots]
        found: List[np.ndarray] = session.run([made, *(slots[name] for name in names)])
        return found

    part, units = ("row", columns) if optimizer.by_row else ("element", [each.reshape(-1) for each in columns])
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        together = result(*columns)
        alone = [result(*(each[at : at + 1] for each in units)) for at in range(len(units[0]))]
    same = all(
        np.shape(each) == (3, width)
        and np.allclose(
            np.reshape(each, -1), np.concatenate([of[place].reshape(-1) for of in alone]), 1e-4, equal_nan=True
        )
        for place, each in enumerate(together)
    )
    refuse(optimizer, f"a rule in which each {part} depends on its own gradient, value and slots alone",
            f"one that gives a {part} another value among others", same)  # fmt: skip
    optimizer.is_tried = True


def _pair(optimizer: ByRule, found: Any) -> Any:
    is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)
    refuse(optimizer, "a pair of a value and {name: slot}", found, is_pair)
    return found


def refuse(optimizer: ByRule, expected: str, found: Any, ok: bool, what: str = "update") -> None:
    """Refuse ``what``, a method or an argument of an optimizer, unless it is ``ok``. Raises JobError."""
    if not ok:
        raise JobError(f"optimizer {type(optimizer).__name__}: {what}: expected {expected}, found {found}")
