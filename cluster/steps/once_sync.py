"""Strictly synchronous steps in which every example counts once, whichever worker dies in the middle of one.

    worker i   notes the place of its batch, pushes its gradient, and passes the gate
    chief      takes the gradients, when all N have passed the gate
    chief      checks the places, notes the step as begun, updates the variables
    chief      moves the places, counts the step, sends the tokens

``cluster.data.places`` has the places, ``cluster.steps.once_worker`` the rules for who starts again.
"""

from typing import Any, List, Sequence, Tuple

from cluster.data.places import Places
from cluster.runtime.gradients import copy_gradient, without_rows
from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Accumulator, Separate
from cluster.steps.exchange import Push
from cluster.steps.token_sync import Meeting, TokenSyncOptimizer

_GATE = "token_sync/gate"


class OnceSyncOptimizer(TokenSyncOptimizer):
    """A ``TokenSyncOptimizer`` whose steps move the ``places`` of what they have trained.

    It keeps the gradients of the workers apart. The *gate* is an accumulator that each worker gives to when it has
    pushed everything: the chief takes nothing before all have, so a chief that dies before has changed nothing.

    Args:
      weight: of this worker's gradient, 0 for a batch in which no example counts.
    """

    def __init__(self, opt: Any, num_workers: int, worker_index: int, *, weight: Any, places: Places, **more: Any):
        super().__init__(opt, num_workers, worker_index, weight=weight, **more)
        self._places = places

    def _push(self) -> List[Any]:
        with tf.control_dependencies([self._places.note(self._stamp)]):
            # An optimizer may change the rows of a table even where their gradient is 0.
            is_empty = tf.equal(self._weight, 0)
            grads = [without_rows(copy_gradient(push.grad), is_empty) for push in self._pushes]
        given = [self._accumulator(push).give(grad, self._stamp) for push, grad in zip(self._pushes, grads)]
        with tf.control_dependencies(given), tf.device(self._global_step.device):
            one = tf.ones([])
        push = Push(_GATE, self._global_step.device, one, one.shape, [one], lambda taken: [])
        self._gate = Accumulator(push, self.num_workers, self._exchange.wire)
        self._accumulators.append(self._gate)
        return [self._gate.give(one, self._stamp)]

    def _accumulator(self, push: Push) -> Meeting:
        separate = Separate(push, self.worker_index, self._receivers, self._exchange.wire, self._exchange.constants)
        self._meetings.append(separate)
        self._accumulators += separate.parts
        return separate

    def _take(self) -> List[Tuple[Any, Meeting]]:
        with tf.control_dependencies([self._gate.take()]):
            taken = super()._take()
        begun, self._rows = self._places.begin_step(self._stamp, [_tensor(grad) for grad, _ in taken])
        return [(_after(begun, grad), accumulator) for grad, accumulator in taken]

    def _conclude(self, after: Sequence[Any]) -> Any:
        with tf.control_dependencies(after):
            moved = self._places.move(tf.identity(self._rows))
        return super()._conclude([moved])


def _tensor(grad: Any) -> Any:
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def _after(done: Any, grad: Any) -> Any:
    """Return the same gradient, on its server, which is there only after ``done``."""
    with tf.device(_tensor(grad).device), tf.control_dependencies([done]):
        return copy_gradient(grad)
