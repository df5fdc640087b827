"""Turns, on ``ps:0``: a worker needs its own to apply a gradient, and the chief takes all of them for a save.

    worker   takes its turn, applies its gradient, gives its turn back
    chief    notes the pause, takes every turn that it finds, until no worker is applying
    chief    saves; gives each worker its turn

A turn is an element of a queue, which waits without a thread. Each worker has a queue of its own. So a turn that is
lost with a worker blocks nobody else, and the next process of that worker gets another.
"""

from typing import Any, List

from cluster.runtime.server_state import kept, take_all
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import SCOPE


class Turns:
    """The turns of all workers, made on the current device.

    Args:
      worker: the index of this one.

    Attributes:
      paused: a variable that is not saved: whether a save is under way, 1 or 0.
    """

    def __init__(self, workers: int, worker: int, is_chief: bool):
        self.paused = kept(f"{SCOPE}/shards/paused", [], tf.int64, 0)
        self._own = _queue(worker)
        self._all = [self._own if each == worker else _queue(each) for each in range(workers if is_chief else 0)]

    def take(self) -> Any:
        """Make the operation that waits for this worker's turn, and takes it."""
        return self._own.dequeue().op

    def give_back(self, number: Any) -> Any:
        """Make the operation that gives this worker's turn back; ``number`` is 1, or 0 for none."""
        return _put(self._own, number)

    def renew(self) -> Any:
        """Make the operation that gives this worker one turn, or none during a pause, whatever it had."""
        with tf.control_dependencies([take_all(self._own)]):
            return _put(self._own, 1 - self.paused.read_value())

    def collect(self) -> Any:
        """Chief: take all turns that are there; return how many each worker had, int32 [workers]."""
        return tf.stack([tf.size(take_all(each)) for each in self._all])

    def give(self, numbers: Any) -> List[Any]:
        """Chief: make the operations that give each worker so many turns, int64 [workers], 0 or 1."""
        return [_put(each, number) for each, number in zip(self._all, tf.unstack(numbers, len(self._all)))]


def _queue(worker: int) -> Any:
    return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{SCOPE}/shards/turn_{worker}")


def _put(queue: Any, number: Any) -> Any:
    return queue.enqueue_many(tf.fill(tf.reshape(number, [1]), tf.constant(1, tf.int64)))
