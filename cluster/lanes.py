"""What one server keeps of overlapped steps: how far each load is, and for whom."""

from typing import Any, Dict, List, Sequence

from cluster.engine import tf
from cluster.exchange import Load
from cluster.queues import emptied
from cluster.sync import CLOSED, counter


class Lane:
    """The loads of one server, in the graph of one worker. The *place* of a load is its index in ``loads``.

    Args:
      workers: how many there are.
      told: those whose queues this graph uses: its own worker's, or the chief's everybody's.
      stamp: of this worker's gradient, on the worker.

    Attributes:
      applied: int64 [loads] on the server, for each load the stamp after the last step that was applied to it.
      given: int64 [loads * workers] on the server, the stamp after the last gradient of each worker.
    """

    def __init__(self, device: str, loads: List[Load], workers: int, told: Sequence[int], stamp: Any):
        self.device, self.loads = device, loads
        self._workers, self._told = workers, told
        self._drained: Dict[int, Any] = {}
        self._came: List[Any] = []  # tokens: the stamps that values come with
        self._waits: List[Any] = []
        server = device.split("task:")[1].split("/")[0]
        with tf.device(device):
            self._after = tf.identity(stamp) + 1
            self.applied = counter(f"applied_{server}", [len(loads)], CLOSED)
            self.given = counter(f"given_{server}", [len(loads) * workers], CLOSED)
            self._queues = [self._made_for(load) if load.parcel else {} for load in loads]
            self._places = [tf.constant(place) for place in range(len(loads))]
            self._own = [tf.constant(place * workers + told[0]) for place in range(len(loads))]

    def _made_for(self, load: Load) -> Dict[int, Any]:
        kinds, shapes = [tf.int64, load.grad.dtype], [(), load.shape]
        return {
            worker: tf.FIFOQueue(-1, kinds, shapes, shared_name=f"{load.name}/values_for_{worker}")
            for worker in self._told
        }

    def note_given(self, place: int) -> Any:
        """The operation that notes this worker's gradient of this step, on the current device."""
        return tf.scatter_update(self.given, self._own[place], self._after)

    def tell_applied(self, place: int, values: Any, after: Sequence[Any]) -> Any:
        """The operation that gives every worker, and then notes, this step's ``values`` of a load.

        They are made once for all workers. A queue may hold a variable's own memory: before that changes again, every
        worker has given its next gradient, and so had them.
        """
        with tf.device(self.device), tf.control_dependencies(after):
            told = [queue.enqueue([self._after, values]) for queue in self._queues[place].values()]
            with tf.control_dependencies(told):
                return tf.scatter_update(self.applied, self._places[place], self._after)

    def values(self, place: int, worker: int, given: Any, is_timed: bool) -> Any:
        """Waits, once a gradient is ``given``, for values of the load: this step's, or some that were left behind."""
        with tf.device(self.device), tf.control_dependencies([given]):
            given_at = tf.timestamp() if is_timed else None
            token, values = self._queues[place][worker].dequeue()
            self._came.append(token)
            if is_timed:
                with tf.control_dependencies([token]):
                    self._waits.append(tf.timestamp() - given_at)
        return values

    @property
    def is_timed(self) -> bool:
        """Whether this worker waits for values here."""
        return bool(self._waits)

    def oldest_token(self) -> Any:
        """The oldest of a step's tokens, an int64 scalar on the server."""
        with tf.device(self.device):
            return tf.reduce_min(tf.stack(self._came))

    def waited(self) -> Any:
        """What a step has waited for others at its timed loads, in float64 seconds."""
        with tf.device(self.device):
            return tf.add_n(self._waits)

    def drained(self, workers: Sequence[int]) -> Any:
        """The operation that empties the queues of these workers."""
        for worker in workers:
            if worker not in self._drained:
                with tf.device(self.device):
                    self._drained[worker] = tf.group(*[emptied(queues[worker]) for queues in self._queues if queues])
        return tf.group(*[self._drained[worker] for worker in workers])

    def recalled(self, workers: Sequence[int]) -> Any:
        """The operation that lets go on whoever waits for values here; ``CLOSED`` tells that they are none."""
        with tf.device(self.device):
            closed = tf.constant(CLOSED, tf.int64)
            return tf.group(*[each for queues in self._queues if queues for each in _closed(queues, workers, closed)])

    def all_noted(self, stamp: Any) -> Any:
        """The operation that notes for every load and worker that what comes next is of the step of ``stamp``."""
        with tf.device(self.device):
            stamp = tf.identity(stamp)
            fresh = [tf.assign(notes, tf.fill(notes.shape, stamp)) for notes in (self.applied, self.given)]
            return tf.group(*fresh)


def _closed(queues: Dict[int, Any], workers: Sequence[int], closed: Any) -> List[Any]:
    """The operations that give each of these workers a token, and zeros in place of values."""
    if not workers:
        return []
    (_, kind), (_, shape) = queues[workers[0]].dtypes, queues[workers[0]].shapes
    nothing = tf.zeros(shape, kind)
    return [queues[worker].enqueue([closed, nothing]) for worker in workers]
