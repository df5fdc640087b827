"""What one server keeps of overlapped steps: how far each load is, and for whom."""

from typing import Any, Callable, Dict, List, Sequence

from cluster.engine import tf
from cluster.exchange import Load
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
        self._came: List[Any] = []  # tokens: the stamps that values come with
        self._waits: List[Any] = []
        server = device.split("task:")[1].split("/")[0]
        with tf.device(device):
            self._after = tf.identity(stamp) + 1
            self.applied = counter(f"applied_{server}", [len(loads)], CLOSED)
            self.given = counter(f"given_{server}", [len(loads) * workers], CLOSED)
            # Those with values come first: see ``Exchange.loads``.
            self._queues = [self._made_for(load) for load in loads if load.parcel]
            self._shapes = [load.shape.as_list() for load in loads if load.parcel]
            self._places = tf.unstack(tf.range(len(loads)))
            self._own = tf.unstack(tf.range(len(loads)) * workers + told[0])

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
            queues = [] if values is None else self._queues[place].values()
            told = [queue.enqueue([self._after, values]) for queue in queues]
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

        def drain(queue: Any, place: Any) -> Any:
            kinds = [tf.int64, self._kind]
            number = tf.raw_ops.QueueSizeV2(handle=queue)
            return tf.raw_ops.QueueDequeueManyV2(handle=queue, n=number, component_types=kinds, timeout_ms=-1)[0]

        return self._for_each(self._all, workers, drain)

    def recalled(self) -> Any:
        """Chief: the operation that lets go on whoever else waits for values here."""
        return self._for_each(self._all, self._told[1:], self._let_go)

    def settled(self, places: Any) -> Any:
        """Chief: the operation that notes loads as applied that were, and lets go on whoever waits for their values.

        A worker gets a token without values, and fetches what the servers have when the step is over.

        Args:
          places: int32 [n].
        """
        with tf.device(self.device):
            with_values = tf.boolean_mask(places, places < len(self._queues))
            told = self._for_each(with_values, self._told, self._let_go)
            with tf.control_dependencies([told]):
                return tf.scatter_update(self.applied, places, tf.fill(tf.shape(places), self._after))

    def _let_go(self, queue: Any, place: Any) -> Any:
        """The operation that lets go on who waits at this queue: ``CLOSED`` tells that the values, zeros, are none."""
        longest = max(map(len, self._shapes))
        padded = tf.constant([[*shape, *[0] * (longest - len(shape))] for shape in self._shapes], tf.int32)
        rank = tf.gather(tf.constant([len(shape) for shape in self._shapes]), place)
        nothing = tf.zeros(tf.gather(padded, place)[:rank], self._kind)
        token = tf.constant(CLOSED, tf.int64)
        return tf.raw_ops.QueueEnqueueV2(handle=queue, components=[token, nothing], timeout_ms=-1)

    @property
    def _all(self) -> List[int]:
        return list(range(len(self._queues)))

    @property
    def _kind(self) -> Any:
        """The type of the values."""
        return self.loads[0].grad.dtype

    def _for_each(self, places: Any, workers: Sequence[int], do: Callable[[Any, Any], Any]) -> Any:
        """The operation that does something with the queue of each worker for each of these places.

        A loop has as many operations as one turn of it, however many loads and workers there are.

        Args:
          do: makes an operation, or a tensor, of a queue and its place.
        """
        if not self._queues or not workers:
            return tf.no_op()
        with tf.device(self.device):
            queues = tf.stack([of_place[worker].queue_ref for of_place in self._queues for worker in workers])
            each = tf.reshape(tf.expand_dims(places, 1) * len(workers) + list(range(len(workers))), [-1])

            def turn(at: Any) -> Any:
                index = each[at]
                with tf.control_dependencies([do(tf.gather(queues, index), index // len(workers))]):
                    return at + 1

            def goes_on(at: Any) -> Any:
                return at < tf.size(each)

            return tf.while_loop(goes_on, turn, [tf.constant(0)], parallel_iterations=1, back_prop=False)

    def all_noted(self, stamp: Any) -> Any:
        """The operation that notes for every load and worker that what comes next is of the step of ``stamp``."""
        with tf.device(self.device):
            stamp = tf.identity(stamp)
            fresh = [tf.assign(notes, tf.fill(notes.shape, stamp)) for notes in (self.applied, self.given)]
            return tf.group(*fresh)
