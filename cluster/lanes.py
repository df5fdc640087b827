"""What one server keeps of overlapped steps: how far each load is, and for whom."""

from typing import Any, List, Sequence

from cluster.engine import tf
from cluster.exchange import Load
from cluster.queues import emptied
from cluster.sync import CLOSED, counter


class Lane:
    """The loads of one server, in the graph of one worker. The *place* of a load is its index in ``loads``.

    Args:
      stamp: of this worker's gradient, on the worker.

    Attributes:
      applied: int64 [loads] on the server, for each load the stamp after the last step that was applied to it.
      given: int64 [loads * workers] on the server, the stamp after the last gradient of each worker.
      brought: what lays the new values of each load down at this worker; as far as they have been made.
    """

    def __init__(self, device: str, loads: List[Load], workers: int, stamp: Any):
        self.device, self.loads = device, loads
        self.brought: List[Any] = []
        self._workers = workers
        self._taken: List[Any] = []  # tokens
        self._waits: List[Any] = []
        server = device.split("task:")[1].split("/")[0]
        with tf.device(device):
            self._after = tf.identity(stamp) + 1
            self.applied = counter(f"applied_{server}", [len(loads)], CLOSED)
            self.given = counter(f"given_{server}", [len(loads) * workers], CLOSED)
            self._tokens = [self._queues(load) if load.parcel else [] for load in loads]

    def _queues(self, load: Load) -> List[Any]:
        names = [f"overlap/{load.name}_for_{worker}" for worker in range(self._workers)]
        return [tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name=name) for name in names]

    def note_given(self, place: int, worker: int) -> Any:
        """The operation that notes a worker's gradient of this step, on the current device."""
        return tf.scatter_update(self.given, place * self._workers + worker, self._after)

    def tell_applied(self, place: int, after: Sequence[Any]) -> Any:
        """The operation that tells every worker, and then notes, that a load has this step's values."""
        with tf.device(self.device), tf.control_dependencies(after):
            told = [queue.enqueue(self._after) for queue in self._tokens[place]]
            with tf.control_dependencies(told):
                return tf.scatter_update(self.applied, place, self._after)

    def token(self, place: int, worker: int, given: Any, is_timed: bool) -> Any:
        """Waits, once a gradient is ``given``, for a token of the load: this step's, or one that was left behind."""
        with tf.device(self.device), tf.control_dependencies([given]):
            given_at = tf.timestamp() if is_timed else None
            token = self._tokens[place][worker].dequeue()
            self._taken.append(token)
            if is_timed:
                with tf.control_dependencies([token]):
                    self._waits.append(tf.timestamp() - given_at)
        return token

    def oldest_token(self) -> Any:
        """The oldest of a step's tokens, an int64 scalar on the server."""
        with tf.device(self.device):
            return tf.reduce_min(tf.stack(self._taken))

    def waited(self) -> Any:
        """What a step has waited for others at its timed loads, in float64 seconds."""
        with tf.device(self.device):
            return tf.add_n(self._waits)

    def drained(self, workers: Sequence[int]) -> Any:
        """The operation that empties the queues of these workers."""
        return self._for(workers, emptied)

    def recalled(self, workers: Sequence[int]) -> Any:
        """The operation that lets go on whoever waits for a token here; ``CLOSED`` tells that it is none."""
        return self._for(workers, lambda queue: queue.enqueue(CLOSED))

    def _for(self, workers: Sequence[int], do: Any) -> Any:
        with tf.device(self.device):
            return tf.group(*[do(queues[worker]) for queues in self._tokens if queues for worker in workers])

    def all_noted(self, stamp: Any) -> Any:
        """The operation that notes for every load and worker that what comes next is of the step of ``stamp``."""
        with tf.device(self.device):
            stamp = tf.identity(stamp)
            fresh = [tf.assign(notes, tf.fill(notes.shape, stamp)) for notes in (self.applied, self.given)]
            return tf.group(*fresh)
