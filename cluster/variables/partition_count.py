"""Choose the number of slices of variables when training begins, by a measurement of the network.

The time to send some values shows the speed of the network. Every worker's graph depends on the number of slices. So
the chief chooses the number, and writes it on ``ps:0``, where all other workers, and any task that restarts, find it.
If ``ps:0`` loses the number, the first worker that joins again writes it again. A new chief may be faster, and choose
another number: then the remaining workers build their graphs again.
"""

import math
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple

from cluster.runtime import server
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.task import Task, Train
from cluster.variables.placement import CHOICES, FEWEST_SLICES, dense_bytes, overlap_pays
from cluster.variables.profile import VariableProfile

_FIRST_VALUES, _MOST_VALUES = 1 << 14, 1 << 22  # values that each server sends
_ENOUGH_S = 0.05
_MEASUREMENTS = 5
_VALUE_BYTES = 4  # of a value
PUSH_S = 0.00015  # the processor time of a worker for a push in a step, whatever its size
BUILD_S = 0.02  # for each push, building and first running the chief's graph takes this long, and all others wait


class Speed(NamedTuple):
    """The speed at which a worker receives from the servers.

    ``busy`` is the part of the time in which receiving used a processor. Near 1, the processor is the limit.
    """

    bytes_per_s: float
    busy: float


class BandwidthProbe:
    """A measurement of the network in the current graph: every server sends to the worker at once.

    Each server sends the same number of values.

    Args:
      host: the device of the worker's memory.
    """

    def __init__(self, num_ps: int, host: str):
        self._num_ps = num_ps
        self._values = tf.placeholder(tf.int64, [])
        self._received = tf.stack([self._receive(index, host) for index in range(num_ps)])

    def _receive(self, server: int, host: str) -> Any:
        with tf.device(ps_device(server)):
            sent = tf.fill([self._values], 1.0)
        with tf.device(host):
            return sent[0]  # needs all values

    def measure(self, session: Any) -> Speed:
        """Return the speed; send increasing numbers of values, until sending takes long enough to be timed."""
        self._timed(session, 1)  # connects
        values = _FIRST_VALUES
        while values < _MOST_VALUES and self._timed(session, values)[0] < _ENOUGH_S:
            values *= 4
        # Other workers build their graphs meanwhile, maybe on this host: the best measurement shows the network's
        # speed.
        seconds, processor_s = min(self._timed(session, values) for _ in range(_MEASUREMENTS))
        return Speed(self._num_ps * values * _VALUE_BYTES / seconds, min(1.0, processor_s / seconds))

    def _timed(self, session: Any, values: int) -> Tuple[float, float]:
        start, processor = time.monotonic(), time.process_time()
        session.run(self._received, {self._values: values})
        return time.monotonic() - start, time.process_time() - processor


def best_slices(whole_s: float, busy: float, num_ps: int, steps: int) -> int:
    """Return the number of slices on each server, of ``CHOICES``, that makes training shortest.

    With s slices on each server, a step takes ``whole_s (1 + 2 / s)`` seconds. A server returns nothing while it
    receives the first slice, and the worker sends nothing while it receives the last. A step also takes ``num_ps s
    PUSH_S`` seconds of a worker's processor. That time counts more when less of the processor is idle while the network
    is busy. Before the first step, ``num_ps s BUILD_S`` seconds pass.

    Args:
      whole_s: seconds to send all variables to a worker, or all gradients from it.
      busy: the part of ``whole_s`` in which sending uses a processor.
      steps: the number of steps of the run.
    """
    cost = num_ps * (PUSH_S / max(1 - busy, 0.001) + BUILD_S / max(steps, 1))
    best = math.sqrt(2 * whole_s / cost)
    return min(CHOICES, key=lambda number: abs(math.log(number / best)))


class PartitionCountChanged(Exception):
    """The chosen number of slices differs from the number in this worker's graph."""


class PartitionCount:
    """The number of slices, as one worker knows it.

    Args:
      serve: returns this task's server, and starts it in the first call.

    ``number`` is the chosen number; None where all workers know the number without a note on ``ps:0``.
    """

    def __init__(self, task: Task, train: Train, serve: Callable[[], Any]):
        self._task, self._train, self._serve = task, train, serve
        self._num_ps = len(task.cluster["ps"])
        self.number: Optional[int] = None
        self._note: Optional[CountNote] = None

    def choose(self, variables: Mapping[str, VariableProfile]) -> int:
        """Return the number of slices for a model with these variables.

        The number is the chief's choice where several numbers are possible.

        Raises:
          TimeoutError: a server, or the chief, did not answer in time.
        """
        size = dense_bytes(variables)
        if not (self._train.may_overlap and overlap_pays(size, self._num_ps)):
            self.number = None
            return FEWEST_SLICES
        serving = self._serve()
        answers: List[int] = []

        def ask() -> bool:
            try:
                answers.append(self._ask(size, serving))
            except server.LOST:
                return False
            return True

        wait_for("the parameter servers, to choose the number of slices", ask)
        self.number = answers[0]
        return self.number

    def keep(self) -> None:
        """Create the operations that ``settle`` runs, in the current graph."""
        self._note = None if self.number is None else CountNote()

    def settle(self, session: Any) -> None:
        """Write this worker's number if ``ps:0`` has none, and compare the number on ``ps:0`` with this worker's.

        Call this method in every session.

        Raises:
          PartitionCountChanged: the number on ``ps:0`` differs from the number in this worker's graph.
        """
        if self._note is None:
            return
        if not self._note.is_left(session):
            self._note.leave(session, self.number)
        if self._note.read(session) != self.number:
            raise PartitionCountChanged

    def _ask(self, size: int, serving: Any) -> int:
        server.wait_for_ps(self._task)
        with tf.Graph().as_default() as graph:
            note = CountNote()
            probe = BandwidthProbe(self._num_ps, worker_device(self._task.role, self._task.index))
        session = server.connect(self._task, serving, graph)
        if self._task.is_chief and not note.is_left(session):
            speed = probe.measure(session)
            whole_s = self._whole_s(size, speed.bytes_per_s)
            number = best_slices(whole_s, speed.busy, self._num_ps, self._train.last_step)
            if not note.is_left(session):  # another chief may have written one meanwhile
                note.leave(session, number)
        wait_for("the chief's number of slices", lambda: note.is_left(session))
        return note.read(session)

    def _whole_s(self, size: int, bytes_per_s: float) -> float:
        """Return the seconds to send all variables to all workers.

        With few servers, the network cards of the servers are the limit.
        """
        return size / bytes_per_s * max(1.0, self._task.num_workers / self._num_ps)


class CountNote:
    """The note of the number of slices on ``ps:0``, and its operations in the current graph."""

    def __init__(self) -> None:
        with tf.device(ps_device(0)), tf.variable_scope("slicing"):
            number = tf.get_variable(
                "number", [], tf.int64, tf.zeros_initializer(), trainable=False, collections=[], use_resource=True
            )
            self._new = tf.placeholder(tf.int64, [])
            self._leave = number.assign(self._new)
            self._missing = tf.size(tf.report_uninitialized_variables([number]))
            self._number = number.read_value()

    def is_left(self, session: Any) -> bool:
        """Return whether ``ps:0`` has a number."""
        return bool(session.run(self._missing) == 0)

    def leave(self, session: Any, number: Optional[int]) -> None:
        """Write the number, and replace an earlier one."""
        session.run(self._leave, {self._new: number})

    def read(self, session: Any) -> int:
        """Return the number that is on ``ps:0``."""
        return int(session.run(self._number))
