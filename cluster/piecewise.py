"""An optimizer that applies the gradients of some variables at a time."""

from typing import Any, List, Sequence, Tuple

from cluster.engine import tf


class Piecewise:
    """Lets ``optimizer`` update variables as their gradients come, in one step.

    An optimizer updates each variable by itself, and then, once a step, what belongs to none of them
    (Adam its powers of beta). ``update`` does the first for some variables, ``finish`` the second, after
    all of them.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self._updates: List[Any] = []

    @staticmethod
    def can(optimizer: Any) -> bool:
        """Whether ``optimizer`` is one: if it has an ``apply_gradients`` of its own, nobody knows what that does."""
        return type(optimizer).apply_gradients is tf.train.Optimizer.apply_gradients

    def update(self, grads_and_vars: Sequence[Tuple[Any, Any]]) -> Any:
        """The operation that updates these variables, on their servers."""
        self.optimizer._finish = lambda updates, name: tf.group(*updates, name=name)
        try:
            update = self.optimizer.apply_gradients(grads_and_vars)
        finally:
            del self.optimizer._finish  # what the class says holds again
        self._updates.append(update)
        return update

    def finish(self) -> Any:
        """The operation that does what is left of the step, after every update."""
        return self.optimizer._finish([tf.group(*self._updates)], "finish")

    def finish_alone(self) -> Any:
        """The same, for a step whose updates have been run before."""
        return self.optimizer._finish([tf.no_op()], "finish_alone")
