"""The values for a worker's next step, on their way into its variables.

A step does not read a variable from its server when the step needs it. The server sends the new value as soon as the
step before has changed it. When all values have arrived, the step puts them together into a queue in the worker's
memory. Between two steps the worker moves the values from the queue into its own variables (``cluster.model.mirrors``).
No operation changes these variables while a step uses them.

The values have a stamp: the number of the step that will use them. A step of an abandoned session may queue its values
late. Without the stamp the worker would then stay one step behind.
"""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.runtime.server_state import take_all
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Bucket
from cluster.variables.masters import plain_name
from cluster.variables.profile import elements

_ROW = 16  # values: TensorFlow splits rows of 64 bytes without copying them


class LocalCopies:
    """The new values of the variables in ``buckets``, on one worker.

    Args:
      shapes: the shape of each variable or slice, by name.
      host: the device of the worker's memory.

    Attributes:
      variables: the variables on the servers, by name, after ``adopt``.
      number: the number of steps whose values are queued, an int32 scalar.
      drain: the operation that drops all values.
    """

    def __init__(self, buckets: Sequence[Bucket], shapes: Mapping[str, Tuple[int, ...]], host: str):
        self.buckets = list(buckets)
        self.variables: Dict[str, Any] = {}
        self._shapes, self.host = shapes, host
        self._names = [name for bucket in self.buckets for name in bucket.names]
        self._is_filled = False  # whether the worker's variables already have their values
        with tf.device(host):
            kinds = [tf.int64, *(tf.float32 for _ in self._names)]
            self._queue = tf.FIFOQueue(-1, kinds, [(), *self._of_names(shapes)], shared_name="copies")
            self.number = self._queue.size()
            self.drain = tf.group(take_all(self._queue))
            self._stamp = self._load = self._fill = tf.no_op()
            self._step = tf.placeholder(tf.int64, [])

    @property
    def bytes(self) -> int:
        """Return the bytes of all values."""
        return sum(4 * self._size(name) for bucket in self.buckets for name in bucket.names)

    def _of_names(self, values: Mapping[str, Any]) -> List[Any]:
        return [values[name] for name in self._names]

    def adopt(self, variables: Sequence[Any]) -> None:
        """Note which of ``variables``, the servers' variables, are in buckets."""
        together = {name for bucket in self.buckets for name in bucket.names}
        self.variables.update({plain_name(each): each for each in variables if plain_name(each) in together})

    def load_into(self, assign: Callable[[Mapping[str, Any], Any], Any], fill: Callable[[Any], Any]) -> None:
        """Set the operations that give the worker's variables their values.

        Args:
          assign: a function of the queued values, by name, and of the global step. It returns the operation that gives
            the worker's variables these values.
          fill: a function of the global step. It returns the operation that sets the variables without queued values.
        """
        with tf.device(self.host):
            values: Mapping[str, Any] = {}
            if self._names:
                self._stamp, values = self.take()
            self._load = assign(values, self._step)
            self._fill = fill(self._step)

    def take(self) -> Tuple[Any, Dict[str, Any]]:
        """Return the stamp of the first element of the queue, and its values by name; wait until the queue has one."""
        stamp, *values = self._queue.dequeue()
        return stamp, dict(zip(self._names, values))

    def load(self, session: Any, step: int) -> Optional[int]:
        """Load the values that have arrived for global step ``step`` into the worker's variables.

        Returns:
          The stamp of these values; None if there are none.
        """
        if self._is_filled:
            self._is_filled = False
            return None
        stamp, _ = session.run([self._stamp, self._load], {self._step: step})
        return None if stamp is None else int(stamp)

    def fill(self, session: Any, step: int, also: Sequence[Any] = ()) -> None:
        """Drop the queued values, and give the worker's variables the values of the servers.

        Args:
          step: the global step that will use the values.
          also: operations to run in addition.
        """
        session.run(self.drain)
        session.run([self._fill, *also], {self._step: step})
        self._is_filled = True

    def keep(self, session: Any) -> None:
        """Drop the queued values, and keep the values of the worker's variables.

        Afterwards the variables count as filled for the step that begins.
        """
        session.run(self.drain)
        self._is_filled = True

    def pack(self, bucket: Bucket, tensors: Mapping[str, Any]) -> Any:
        """Pack the tensors of a bucket into one, on the current device.

        A single tensor keeps its own shape; several become one tensor of shape [rows, 16]. Each of them begins a new
        row, and zeros fill the rest of its last row.
        """
        if len(bucket.names) == 1:
            return tensors[bucket.names[0]]
        pieces = []
        for name in bucket.names:
            pieces.append(tf.reshape(tensors[name], [-1]))
            if self._size(name) % _ROW:
                pieces.append(tf.zeros([-self._size(name) % _ROW]))
        return tf.reshape(tf.concat(pieces, 0), [-1, _ROW])

    def packed_shape(self, bucket: Bucket) -> Tuple[int, ...]:
        """Return the shape of the result of ``pack``."""
        if len(bucket.names) == 1:
            return self._shapes[bucket.names[0]]
        return sum(self._rows(name) for name in bucket.names), _ROW

    def unpack(self, bucket: Bucket, tensor: Any) -> Dict[str, Any]:
        """Return the tensors of ``bucket`` by name, from the result of ``pack``."""
        if len(bucket.names) == 1:
            return {bucket.names[0]: tensor}
        parts = tf.split(tensor, [self._rows(name) for name in bucket.names])
        return {name: self._unpadded(name, part) for name, part in zip(bucket.names, parts)}

    def _unpadded(self, name: str, rows: Any) -> Any:
        if self._size(name) % _ROW:
            rows = tf.reshape(rows, [-1])[: self._size(name)]
        return tf.reshape(rows, self._shapes[name])

    def _rows(self, name: str) -> int:
        """Return the number of rows that a variable needs in a shared bucket."""
        return -(-self._size(name) // _ROW)

    def _size(self, name: str) -> int:
        return elements(self._shapes[name])

    def put(self, values: Mapping[str, Any], stamp: Any) -> Any:
        """Return the operation that queues ``values``, by name, with their ``stamp``, for the next step."""
        with tf.device(self.host):
            return self._queue.enqueue([stamp, *self._of_names(values)])
