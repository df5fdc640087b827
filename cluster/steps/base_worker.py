"""The base class of all workers, the inputs of a step, and the ways to stop workers during the chief's last save.

A strictly synchronous step needs the chief's gradient, so the chief stops all workers by sending none. Other kinds of
training stop as follows. The chief waits at most ``STILL_S`` seconds for a worker that hangs or has died:

    backup workers, stock    the chief's thread, which applies the steps, stops at its ``Crossing``
    asynchronous             every worker waits at the ``HoldGate`` on ``ps:0``, between two steps of its own
"""

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from cluster.protocol.flight_records import Wait
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Exchange
from cluster.task import Task

STILL_S = 5.0
_LOOK_S = 0.05  # how often a worker at the gate looks whether it is open
_POLL_S = 0.005
OPEN = TRAINS = 0  # every other number is of one closing of the gate
ABSENT = -1


@dataclass(frozen=True)
class StepParts:
    """The inputs of one worker's steps: parts of its graph, and settings.

    The servers use ``optimizer`` to apply ``grads_and_vars``, pairs (gradient or None, variable). ``weight`` is this
    worker's weight in a step's mean loss: 0 for a batch in which no example counts, None if it is fixed. Each session
    calls ``beginnings`` before this worker sends a gradient. A step may omit gradients of ``backup_workers`` workers.
    """

    optimizer: Any
    grads_and_vars: Sequence[Tuple[Any, Any]]
    global_step: Any
    loss: Any
    num_workers: int
    worker_index: int
    exchange: Exchange
    clip_norm: Optional[float] = None
    weight: Any = None
    beginnings: Sequence[Callable[[Any], None]] = ()
    backup_workers: int = 0


class TornStepError(Exception):
    """A chief died in the middle of a step: all values that the step changes must be restored from one checkpoint."""


class HoldGate:
    """A gate at which workers wait while the chief saves; this object is one worker's access to it.

    Attributes:
      state: the gate's variables, which are not saved in checkpoints.
      reset: the operation that initializes ``state``; the chief runs it before it lets workers join.
    """

    def __init__(self, task: Task):
        self._worker, self._is_chief, self._seen = task.worker_index, task.is_chief, OPEN
        with tf.device(ps_device(0)), tf.variable_scope("gate"):
            closed = kept("closed", [], tf.int64, OPEN)
            waiting = kept("waiting", [task.num_workers], tf.int64, ABSENT)
            self._number = tf.placeholder(tf.int64, [])
            self._set = tf.assign(closed, self._number).op
            self._arrive = tf.scatter_update(waiting, self._worker, self._number).op
            self._read, self._read_waiting = closed.read_value(), waiting.read_value()
        self.state: List[Any] = [closed, waiting]
        self.reset = tf.group(closed.initializer, waiting.initializer)

    def enter(self, session: Any) -> None:
        """Register this worker as training; the chief also opens the gate, which an earlier process may have closed."""
        if self._is_chief:
            session.run(self._set, {self._number: OPEN})
        session.run(self._arrive, {self._number: TRAINS})
        self.note(session.run(self._read))

    def with_number(self, step: Any) -> Any:
        """Return a tensor [2] on the current device: ``step``, and the gate's number, which ``note`` takes."""
        with tf.control_dependencies([step]):
            return tf.stack([step, self.state[0].read_value()])

    def note(self, number: Any) -> None:
        """Store ``number``, the gate's number after this worker's newest step: ``OPEN``, or the number of a closing."""
        self._seen = int(number)

    @property
    def is_closed(self) -> bool:
        """Return whether this worker waits at the gate, or must wait there before its next step."""
        return self._seen != OPEN

    def pass_through(self, session: Any) -> None:
        """Wait between two steps until the gate is open; return at once if this worker last saw it open."""
        if not self.is_closed:
            return
        while self.is_closed:
            session.run(self._arrive, {self._number: self._seen})
            time.sleep(_LOOK_S)
            self.note(session.run(self._read))
        session.run(self._arrive, {self._number: TRAINS})

    @contextlib.contextmanager
    def closed(self, session: Any) -> Iterator[None]:
        """Inside this context, keep the gate closed, as the chief: no worker takes a step, unless the log names it."""
        number = time.time_ns()
        session.run(self._set, {self._number: number})
        try:
            self._wait_for_others(session, number)
            yield
        finally:
            session.run(self._set, {self._number: OPEN})

    def _wait_for_others(self, session: Any, number: int) -> None:
        until = time.monotonic() + STILL_S
        while True:
            found = enumerate(session.run(self._read_waiting).tolist())
            late = [each for each, waits in found if each != self._worker and waits not in (number, ABSENT)]
            if not late:
                return
            if time.monotonic() > until:
                names = ", ".join(map(str, late))
                print(f"saving while workers with index {names} still take a step, after {STILL_S:.0f} s", flush=True)
                return
            time.sleep(_POLL_S)


class Crossing:
    """A point that a thread passes before each of its steps, and at which another thread can stop it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_closed = self._is_there = False

    def cross(self) -> None:
        """Pass the crossing, as the thread that takes steps; wait while the crossing is closed."""
        with self._changed:
            self._is_there = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_closed)
            self._is_there = False

    def leave(self) -> None:
        """Record that the thread takes no more steps, so that ``closed`` does not wait for it."""
        with self._changed:
            self._is_there = True
            self._changed.notify_all()

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Inside this context, stop the thread at the crossing, unless its step takes longer than ``STILL_S`` s."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: self._is_there, STILL_S)
        try:
            yield
        finally:
            with self._changed:
                self._is_closed = False
                self._changed.notify_all()


class Finisher(threading.Thread):
    """A thread of the chief that applies all steps, so that a slow chief delays no worker; it ends after the last step.

    Only a run with backup workers uses it: otherwise the chief's own step applies all gradients.

    Attributes:
      error: the error that ended the thread early. It then closes the session, so the chief's own step ends.
      crossing: the point between two steps where the chief may stop the thread.
    """

    def __init__(self, session: Any, finish: Any, steps: int):
        super().__init__(name="finisher", daemon=True)
        self._session, self._finish, self._steps = session, finish, steps
        self.error: Optional[Exception] = None
        self.crossing = Crossing()

    def run(self) -> None:
        """Run the operation ``finish`` once for each step. After an exception, set ``error`` and close the session."""
        try:
            for _ in range(self._steps):
                self.crossing.cross()
                self._session.run(self._finish)
        except Exception as error:
            self.error = error
            self._session.close()
        self.crossing.leave()


class BaseWorker(ABC):
    """The base class of a worker that takes steps in a session.

    Attributes:
      has_ended: whether training has used all data, so that no step is left.
      longest_wait: the last step's longest wait for a ps; None if steps do not measure the wait for each ps.
      overlaps: whether pushes and pulls run at the same time.
      dropped: the number of this worker's gradients that came too late to be used.
      measures: metrics of the chief's steps, such as how far they are behind a log that grows.
      waited_s: the seconds that this worker's steps have waited for other workers so far; None if steps never wait.
    """

    has_ended = False
    longest_wait: Optional[Wait] = None
    overlaps = False
    dropped = 0
    measures: Mapping[str, float] = MappingProxyType({})
    waited_s: Optional[float] = 0.0
    _beginnings: Sequence[Callable[[Any], None]] = ()  # those of its ``StepParts``

    @property
    @abstractmethod
    def needed(self) -> List[Any]:
        """Return the variables, other than TensorFlow's global ones, that need a value before this worker can join."""

    @abstractmethod
    def is_open(self, session: Any) -> bool:
        """Return whether the chief lets workers join. Call this method only when every variable has a value."""

    @abstractmethod
    def close(self, session: Any) -> None:
        """As the chief, keep workers from joining while it initializes or restores variables."""

    @abstractmethod
    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """As the chief, let workers join, and join; return the global step.

        Args:
          steps: the global step at which training ends.
          is_new: whether the servers hold initial values that equal those of this worker's own variables.
        """

    @abstractmethod
    def join(self, session: Any, steps: int) -> int:
        """Join workers that are already training; return the global step, at ``steps`` without taking a further one."""

    @abstractmethod
    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Take a step and fetch ``more`` with it; return the new global step, the loss, and the values of ``more``.

        Without a record for any worker, it takes none: it returns the same step after a moment, and None for ``more``.
        """

    @abstractmethod
    def refresh(self, session: Any) -> None:
        """Fetch the newest values into the worker's variables immediately."""

    @abstractmethod
    def renew(self, session: Any) -> None:
        """Fetch the newest values, between two steps, for this worker's next step."""

    @abstractmethod
    def owes(self, session: Any) -> bool:
        """Return whether the current step waits for this worker.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """

    @abstractmethod
    def scalars(self) -> Dict[str, Any]:
        """Make tensors that describe a step, by name; call this method before the graph is finalized."""

    @abstractmethod
    def account(self, session: Any) -> str:
        """Return one line with the number of steps or gradients so far."""

    def finish(self, session: Any, step: int) -> int:
        """Send the servers all updates that they lack from this worker; return the global step, ``step`` or later."""
        return step

    def own_step(self, step: int) -> int:
        """Return the step number at which this worker's next step begins; ``step`` is the servers' global step."""
        return step

    def begin_reading(self, session: Any) -> None:
        """Begin to read batches at the servers' place: before a rejoin sends a gradient, and again after joining."""
        for begin in self._beginnings:
            begin(session)

    def stop_reading(self) -> None:  # noqa: B027
        """Stop reading batches for a session that the worker gives up."""

    def paused(self, session: Any) -> ContextManager[Any]:
        """Return a context for the chief's save, in which no gradient that advances a place in the data is applied."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """Return a context in which no worker takes a step; the context yields the global step.

        The chief enters it after ``step``, between two of its own steps. In this class every step needs the chief.
        """
        yield step
