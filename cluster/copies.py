"""A worker's own copies of the variables: what the model reads instead of the servers.

A copy is not read from its server when a step needs it. It was sent back as soon as the step before had
changed it, and has waited in a queue of the worker's memory since. The model takes it from there
once a step, for all towers; nothing can change it while they use it.

Each comes with a stamp that says which step it is for. A step of a session that was given up may lay
something down late; the stamp tells, where else a worker would be a step behind from then on.
"""

from typing import Any, Dict, Mapping, Sequence, Tuple

import numpy as np

from cluster.engine import tf
from cluster.parcels import Parcel
from cluster.queues import emptied

_ROW = 16  # values: TensorFlow takes rows of 64 bytes apart without copying them


class Copies:
    """The copies of the variables in ``parcels``, on one worker.

    Args:
      shapes: of each variable or slice, by name.
      host: the device of the worker's memory.

    ``values`` are the tensors that a step computes with, by name; ``oldest`` is the lowest of the stamps with which
    they were put there, an int64 scalar; None without parcels.
    """

    def __init__(self, parcels: Sequence[Parcel], shapes: Mapping[str, Tuple[int, ...]], host: str):
        self.parcels = list(parcels)
        self.variables: Dict[str, Any] = {}  # by name, once the model has made them
        self.values: Dict[str, Any] = {}
        self._shapes, self.host = shapes, host
        self._queues: Dict[Parcel, Any] = {}
        self._on_servers: Dict[str, Any] = {}
        with tf.device(host):
            stamps = [self._take(parcel) for parcel in self.parcels]
            self.oldest = tf.reduce_min(tf.stack(stamps)) if stamps else None
            self.drain = tf.group(*[emptied(queue) for queue in self._queues.values()])

    @property
    def bytes(self) -> int:
        """Of all values."""
        return sum(int(self.values[name].dtype.size) * self._values(name) for name in self.values)

    def _take(self, parcel: Parcel) -> Any:
        shapes = [self._shapes[name] for name in parcel.names]
        kinds = [tf.int64, *(tf.float32 for _ in shapes)]
        queue = tf.FIFOQueue(-1, kinds, [(), *shapes], shared_name=f"copies/{parcel.name}")
        stamp, *values = queue.dequeue()
        self.values.update(zip(parcel.names, values))
        self._queues[parcel] = queue
        return stamp

    def adopt(self, variables: Sequence[Any]) -> None:
        """Makes variables that the model has made read their copies, those that have one.

        A variable of ``tf.get_variable`` is read through a tensor that stands for its value on
        the caching device; TensorFlow has no public way to say which tensor that is.
        """
        for variable in variables:
            name = variable.op.name
            if name in self.values and name not in self.variables:
                self.variables[name] = variable
                self._on_servers[name] = variable._snapshot
                variable._snapshot = self.values[name]

    def hand_back(self) -> None:
        """Makes the variables read their servers again: what is built from here on is no part of a training step.

        An evaluation is not, nor TensorFlow's Saver, which reads a slice as a model does: they would take a copy
        that the next step waits for.
        """
        for name, variable in self.variables.items():
            variable._snapshot = self._on_servers[name]

    def pack(self, parcel: Parcel, tensors: Mapping[str, Any]) -> Any:
        """One tensor of what travels together, on the current device: of its own shape, or [rows, 16] if it is several.

        Each of several begins a row, and what its last one has left is zeros.
        """
        if len(parcel.names) == 1:
            return tensors[parcel.names[0]]
        pieces = []
        for name in parcel.names:
            pieces.append(tf.reshape(tensors[name], [-1]))
            if self._values(name) % _ROW:
                pieces.append(tf.zeros([-self._values(name) % _ROW]))
        return tf.reshape(tf.concat(pieces, 0), [-1, _ROW])

    def unpack(self, parcel: Parcel, tensor: Any) -> Dict[str, Any]:
        """The opposite of ``pack``."""
        if len(parcel.names) == 1:
            return {parcel.names[0]: tensor}
        parts = tf.split(tensor, [-(-self._values(name) // _ROW) for name in parcel.names])
        return {name: self._unpadded(name, part) for name, part in zip(parcel.names, parts)}

    def _unpadded(self, name: str, rows: Any) -> Any:
        if self._values(name) % _ROW:
            rows = tf.reshape(rows, [-1])[: self._values(name)]
        return tf.reshape(rows, self._shapes[name])

    def _values(self, name: str) -> int:
        return int(np.prod(self._shapes[name]))

    def put(self, parcel: Parcel, tensor: Any, stamp: Any) -> Any:
        """The operation that lays down for the next step what has come."""
        with tf.device(self.host):
            values = self.unpack(parcel, tensor)
            return self._queues[parcel].enqueue([stamp, *(values[name] for name in parcel.names)])
