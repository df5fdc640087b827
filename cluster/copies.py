"""The values that a worker's next step computes with, on their way into its variables.

A variable is not read from its server when a step needs it. Its new value was sent as soon as the step before had
changed it, and waits in a queue of the worker's memory. Between two steps ``load`` takes all values from
there into the worker's own variables (``cluster.mirrors``); nothing changes these while a step uses them.

Each comes with a stamp that says which step it is for. A step of a session that was given up may lay
something down late; the stamp tells, where else a worker would be a step behind from then on.
"""

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from cluster.engine import tf
from cluster.masters import plain_name
from cluster.parcels import Parcel
from cluster.queues import emptied

_ROW = 16  # values: TensorFlow takes rows of 64 bytes apart without copying them


class Copies:
    """The new values of what is in ``parcels``, on one worker.

    Args:
      shapes: of each variable or slice, by name.
      host: the device of the worker's memory.

    Attributes:
      variables: those on the servers, by name, once ``adopt`` was given them.
      load: the operation that takes one value of each into the worker's variables; what ``load_into`` made it.
      stamps: the lowest of the stamps with which these were put there, int64 scalar; empty without parcels.
      fill: the operation that gives the worker's variables all that ``load`` does not.
      drain: the operation that drops all values.
    """

    def __init__(self, parcels: Sequence[Parcel], shapes: Mapping[str, Tuple[int, ...]], host: str):
        self.parcels = list(parcels)
        self.variables: Dict[str, Any] = {}
        self._shapes, self.host = shapes, host
        self._queues: Dict[Parcel, Any] = {}
        self._values: Dict[str, Any] = {}
        with tf.device(host):
            stamps = [self._take(parcel) for parcel in self.parcels]
            self.stamps: List[Any] = [tf.reduce_min(tf.stack(stamps))] if stamps else []
            self.drain = tf.group(*[emptied(queue) for queue in self._queues.values()])
            self.load = self.fill = tf.no_op()
            self._step = tf.placeholder(tf.int64, [])

    @property
    def bytes(self) -> int:
        """Of all values."""
        return sum(4 * self._size(name) for parcel in self.parcels for name in parcel.names)

    def _take(self, parcel: Parcel) -> Any:
        shapes = [self._shapes[name] for name in parcel.names]
        kinds = [tf.int64, *(tf.float32 for _ in shapes)]
        queue = tf.FIFOQueue(-1, kinds, [(), *shapes], shared_name=f"copies/{parcel.name}")
        stamp, *values = queue.dequeue()
        self._values.update(zip(parcel.names, values))
        self._queues[parcel] = queue
        return stamp

    def adopt(self, variables: Sequence[Any]) -> None:
        """Note variables of the servers, those that are in parcels."""
        together = {name for parcel in self.parcels for name in parcel.names}
        self.variables.update({plain_name(each): each for each in variables if plain_name(each) in together})

    def load_into(self, assign: Callable[[Mapping[str, Any], Any], Any], fill: Any) -> None:
        """Say what becomes of the values: ``assign`` makes an operation of them, by name, and of the global step."""
        with tf.device(self.host):
            self.load, self.fill = assign(self._values, self._step), fill

    def run_load(self, session: Any, step: int) -> List[int]:
        """Take what there is for global step ``step``; return the lowest stamp, if any."""
        stamps, _ = session.run([self.stamps, self.load], {self._step: step})
        return [int(stamp) for stamp in stamps]

    def pack(self, parcel: Parcel, tensors: Mapping[str, Any]) -> Any:
        """One tensor of what travels together, on the current device: of its own shape, or [rows, 16] if it is several.

        Each of several begins a row, and what its last one has left is zeros.
        """
        if len(parcel.names) == 1:
            return tensors[parcel.names[0]]
        pieces = []
        for name in parcel.names:
            pieces.append(tf.reshape(tensors[name], [-1]))
            if self._size(name) % _ROW:
                pieces.append(tf.zeros([-self._size(name) % _ROW]))
        return tf.reshape(tf.concat(pieces, 0), [-1, _ROW])

    def unpack(self, parcel: Parcel, tensor: Any) -> Dict[str, Any]:
        """The opposite of ``pack``."""
        if len(parcel.names) == 1:
            return {parcel.names[0]: tensor}
        parts = tf.split(tensor, [-(-self._size(name) // _ROW) for name in parcel.names])
        return {name: self._unpadded(name, part) for name, part in zip(parcel.names, parts)}

    def _unpadded(self, name: str, rows: Any) -> Any:
        if self._size(name) % _ROW:
            rows = tf.reshape(rows, [-1])[: self._size(name)]
        return tf.reshape(rows, self._shapes[name])

    def _size(self, name: str) -> int:
        return int(np.prod(self._shapes[name]))

    def put(self, parcel: Parcel, tensor: Any, stamp: Any) -> Any:
        """The operation that lays down for the next step what has come."""
        with tf.device(self.host):
            values = self.unpack(parcel, tensor)
            return self._queues[parcel].enqueue([stamp, *(values[name] for name in parcel.names)])
