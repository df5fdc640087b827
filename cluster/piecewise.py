"""An optimizer that applies the gradients of some variables at a time."""

from typing import Any, List, Sequence, Tuple

from cluster.apart import is_elementwise
from cluster.engine import tf
from cluster.grouped import Grouped

GradsAndVars = Sequence[Tuple[Any, Any]]


class Piecewise:
    """Lets ``optimizer`` update variables as their gradients come, in one step.

    An optimizer updates each variable by itself, and then, once a step, what belongs to none of them
    (Adam its powers of beta). ``update`` does the first for some variables, ``finish`` the second, after
    all of them.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self._used: List[Any] = []
        self._updates: List[Any] = []

    @staticmethod
    def can(optimizer: Any) -> bool:
        """Whether ``optimizer`` is one: if it has an ``apply_gradients`` of its own, nobody knows what that does."""
        if isinstance(optimizer, Grouped):
            return is_elementwise(optimizer)
        return type(optimizer).apply_gradients is tf.train.Optimizer.apply_gradients

    def update(self, grads_and_vars: GradsAndVars) -> Any:
        """The operation that updates these variables, on their servers."""
        shared_out = (
            self.optimizer.shared_out(grads_and_vars)
            if isinstance(self.optimizer, Grouped)
            else [(self.optimizer, list(grads_and_vars))]
        )
        update = tf.group(*[self._apply(optimizer, pairs) for optimizer, pairs in shared_out])
        self._updates.append(update)
        return update

    def _apply(self, optimizer: Any, grads_and_vars: GradsAndVars) -> Any:
        if not any(optimizer is each for each in self._used):
            self._used.append(optimizer)
        optimizer._finish = lambda updates, name: tf.group(*updates, name=name)
        try:
            return optimizer.apply_gradients(grads_and_vars)
        finally:
            del optimizer._finish  # what the class says holds again

    def finish(self) -> Any:
        """The operation that does what is left of the step, after every update."""
        updates = tf.group(*self._updates)
        return tf.group(*[each._finish([updates], "finish") for each in self._used])

    def finish_alone(self) -> Any:
        """The same, for a step whose updates have been run before."""
        return tf.group(*[each._finish([tf.no_op()], "finish_alone") for each in self._used])
