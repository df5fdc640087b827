"""The update of rows: an optimizer's rule, applied only to the rows for which a step has a gradient.

TensorFlow's own Adam updates the whole table even if only a few rows have a gradient. Here the optimizer takes these
rows and their slots, updates them, and writes them back. Momentum and moments of other rows do not change ("lazy"), as
in TensorFlow's own momentum and Adagrad.
"""

from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Type

from cluster.errors import JobError
from cluster.recommend.tables.held_rows import RowSlot
from cluster.recommend.tables.store import Store
from cluster.runtime.tf_compat import tf
from cluster.updates.by_rule import ByRule, updated

Values = List[Any]  # of slots, each [n, width]
Rule = Callable[[Any, Any, Values], Tuple[Any, Values]]  # (gradient, rows, slots) -> (rows, slots)
Asked = Sequence[Tuple[Any, Any]]  # (keys, numbers of their tables) of each request


class RowOptimizer(tf.train.Optimizer):  # type: ignore[misc]
    """An optimizer that applies gradients to the rows of stores; the indices of a gradient are keys of rows.

    Args:
      rule: a function from the number of a store's update, from 1 on, to the ``Rule`` of the author's optimizer.
      stores: the stores with these rows.
      asked: the keys that this worker has looked up in each store, with the numbers of their tables, by the name of the
        store's rows. They are needed only if other workers' updates may come between a lookup and this worker's update.
    """

    works_by_element = True

    def __init__(
        self, rule: Callable[[Any], Rule], stores: Sequence[Store], asked: Mapping[str, Asked] = MappingProxyType({})
    ):
        super().__init__(use_locking=False, name="Rows")
        self._rule, self._asked = rule, asked
        self._stores = {store.rows.op.name: store for store in stores}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Make nothing: stores have their slots."""

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._apply_sparse(grad, var)  # each row is once in it

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("expected a gradient for rows of a table, found one for the whole table")

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        store = self._stores[var.op.name]
        asked = self._asked.get(var.op.name, ())
        return store.update(grad.indices, grad.values, lambda *update: self._write(store, *update), asked)

    def _write(self, store: Store, number: Any, places: Any, grads: Any) -> Any:
        rows = tf.gather(store.rows, places)
        kept = [] if store.slots is None else tf.split(tf.gather(store.slots, places), len(store.kept), 1)
        rows, kept = self._rule(number)(grads, rows, kept)
        written = [tf.scatter_update(store.rows, places, rows).op]
        if store.slots is not None:
            written.append(tf.scatter_update(store.slots, places, tf.concat(kept, 1)).op)
        return tf.group(*written)


def slots_of(optimizer: Any) -> List[RowSlot]:
    """Return the slots that the rule of ``optimizer`` keeps for each element of a row.

    Raises:
      JobError: no rule for rows is known for ``optimizer``.
    """
    return _known(optimizer)[0](optimizer)


def rule_of(optimizer: Any) -> Callable[[Any], Rule]:
    """Return a function from the number of an update to the rule by which ``optimizer`` updates rows.

    Raises:
      JobError: no rule for rows is known for ``optimizer``.
    """
    make = _known(optimizer)[1]
    return lambda count: make(optimizer, count)


def _known(optimizer: Any) -> "_Known":
    if isinstance(optimizer, ByRule):
        return _slots_by_rule, _by_rule
    found = _RULES.get(type(optimizer))
    if found is None:
        names = ", ".join(each.__name__ for each in _RULES)
        raise JobError(
            f"optimizer: expected an optimizer that can update rows of embedding tables ({names}, or a class below"
            f" cluster.optimizers.ByRule), found {type(optimizer).__name__}"
        )
    return found


def _slots_by_rule(optimizer: Any) -> List[RowSlot]:
    return [RowSlot(name, optimizer.slots[name]) for name in sorted(optimizer.slots)]  # as a checkpoint has them


def _by_rule(optimizer: Any, count: Any) -> Rule:
    number = tf.cast(count, tf.float32)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        rows, slots = updated(optimizer, number, grad, rows, dict(zip(sorted(optimizer.slots), kept)))
        return rows, [slots[name] for name in sorted(optimizer.slots)]

    return update


def _number(value: Any) -> Any:
    return tf.cast(value() if callable(value) else value, tf.float32)


def _gradient_descent(optimizer: Any, count: Any) -> Rule:
    rate = _number(optimizer._learning_rate)
    return lambda grad, rows, kept: (rows - rate * grad, kept)


def _momentum(optimizer: Any, count: Any) -> Rule:
    rate, momentum = _number(optimizer._learning_rate), _number(optimizer._momentum)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        moment = momentum * kept[0] + grad
        step = grad + momentum * moment if optimizer._use_nesterov else moment
        return rows - rate * step, [moment]

    return update


def _adagrad(optimizer: Any, count: Any) -> Rule:
    rate = _number(optimizer._learning_rate)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        total = kept[0] + grad * grad
        return rows - rate * grad * tf.math.rsqrt(total), [total]

    return update


def _rmsprop(optimizer: Any, count: Any) -> Rule:
    """T. Tieleman and G. Hinton, "Lecture 6.5: RMSProp", 2012, as TensorFlow has it; centered: with the mean taken off.

    The slots are in the order of ``_rmsprop_slots``.
    """
    rate, momentum = _number(optimizer._learning_rate), _number(optimizer._momentum)
    decay, epsilon = _number(optimizer._decay), _number(optimizer._epsilon)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        square, *means, moment = kept
        square = decay * square + (1 - decay) * grad * grad
        means = [decay * mean + (1 - decay) * grad for mean in means]
        spread = square - means[0] * means[0] if means else square
        moment = momentum * moment + rate * grad * tf.math.rsqrt(spread + epsilon)
        return rows - moment, [square, *means, moment]

    return update


def _rmsprop_slots(optimizer: Any) -> List[RowSlot]:
    """Return a mean of squares, with ``centered`` a mean, and a momentum."""
    first_values = [1.0, 0.0, 0.0] if optimizer._centered else [1.0, 0.0]
    return [RowSlot(f"RMSProp_{place}" if place else "RMSProp", first) for place, first in enumerate(first_values)]


def _adadelta(optimizer: Any, count: Any) -> Rule:
    """M. D. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, with a learning rate as TensorFlow has it."""
    rate, decay, epsilon = _number(optimizer._lr), _number(optimizer._rho), _number(optimizer._epsilon)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        square, moved = kept
        square = decay * square + (1 - decay) * grad * grad
        step = tf.sqrt(moved + epsilon) * tf.math.rsqrt(square + epsilon) * grad
        return rows - rate * step, [square, decay * moved + (1 - decay) * step * step]

    return update


def _adam(optimizer: Any, count: Any) -> Rule:
    """D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015; moments of the given rows alone."""
    first, second = _number(optimizer._beta1), _number(optimizer._beta2)
    number = tf.cast(count, tf.float32)
    rate = _number(optimizer._lr) * tf.sqrt(1 - tf.pow(second, number)) / (1 - tf.pow(first, number))
    epsilon = _number(optimizer._epsilon)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        mean = first * kept[0] + (1 - first) * grad
        square = second * kept[1] + (1 - second) * grad * grad
        return rows - rate * mean / (tf.sqrt(square) + epsilon), [mean, square]

    return update


def _ftrl(optimizer: Any, count: Any) -> Rule:
    """H. B. McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013, as TensorFlow has it."""
    rate, power = _number(optimizer._learning_rate), -_number(optimizer._learning_rate_power)
    l1, l2 = _number(optimizer._l1_regularization_strength), _number(optimizer._l2_regularization_strength)
    shrinkage = _number(optimizer._l2_shrinkage_regularization_strength)

    def update(grad: Any, rows: Any, kept: Values) -> Tuple[Any, Values]:
        before, linear = kept
        after = before + grad * grad
        change = (tf.pow(after, power) - tf.pow(before, power)) / rate
        linear = linear + grad + 2 * shrinkage * rows - change * rows
        curve = tf.pow(after, power) / rate + 2 * l2
        moved = (tf.sign(linear) * l1 - linear) / curve
        return tf.where(tf.abs(linear) > l1, moved, tf.zeros_like(rows)), [after, linear]

    return update


_Known = Tuple[Callable[[Any], List[RowSlot]], Callable[[Any, Any], Rule]]
_RULES: Dict[Type[Any], _Known] = {
    tf.train.GradientDescentOptimizer: (lambda of: [], _gradient_descent),
    tf.train.MomentumOptimizer: (lambda of: [RowSlot("Momentum", 0.0)], _momentum),
    tf.train.AdagradOptimizer: (lambda of: [RowSlot("Adagrad", float(of._initial_accumulator_value))], _adagrad),
    tf.train.AdadeltaOptimizer: (lambda of: [RowSlot("Adadelta", 0.0), RowSlot("Adadelta_1", 0.0)], _adadelta),
    tf.train.RMSPropOptimizer: (_rmsprop_slots, _rmsprop),
    tf.train.AdamOptimizer: (lambda of: [RowSlot("Adam", 0.0), RowSlot("Adam_1", 0.0)], _adam),
    tf.train.FtrlOptimizer: (
        lambda of: [RowSlot("Ftrl", float(of._initial_accumulator_value)), RowSlot("Ftrl_1", 0.0)],
        _ftrl,
    ),
}
