"""Asynchronous training steps in which no example is lost, even if a worker dies; ``own_places`` has the progress.

The death of a process may let the examples of one batch count twice.
"""

import math
import time
from dataclasses import replace
from typing import Any, ContextManager, List, Sequence, Tuple

from cluster.recommend.once.own_places import NOT_ADMITTED, OwnPlaces
from cluster.runtime.gradients import copy_gradient, divide, values_of
from cluster.runtime.tf_compat import tf
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import HoldGate, StepParts
from cluster.steps.exchange import Push

_LOOK_S = 0.1  # how often a worker without a shard looks for one
_ASK_MS = 5000


class OnceAsyncWorker(AsyncWorker):
    """The asynchronous steps of one worker whose batches come from shards.

        worker   computes a gradient from the values that the servers have when the step begins
        worker   records its batch's position; the servers apply the gradient, and advance the progress of the shard
        worker   if it has no shard, waits until it gets one, or until all shards are trained

    Steps do not overlap, however large the model is. A worker computes its next gradient only after the progress of the
    shard includes its last batch.

    ``has_ended``, available after ``join`` or ``open``: whether all epochs of all shards are trained.
    """

    may_overlap = False  # a step that overlaps has parts of two batches on the servers

    def __init__(self, parts: StepParts, gate: HoldGate, places: OwnPlaces):
        self._places, self.measures, global_step = places, places.lag, parts.global_step
        weight = tf.where(parts.weight > 0, parts.weight, tf.ones_like(parts.weight))
        pairs = [(None if grad is None else divide(grad, weight), variable) for grad, variable in parts.grads_and_vars]
        super().__init__(replace(parts, grads_and_vars=pairs), gate)
        self.waited_s = 0.0  # without a shard
        with tf.control_dependencies([self._next_step]):
            self._ends = tf.identity(places.has_ended_now())
        with tf.device(global_step.device):
            self._unchanged = gate.with_number(global_step.read_value())

    def _at_once(self, pushes: Sequence[Push]) -> Any:
        self._noted = self._places.note_own(self._stamp, [values_of(push.grad) for push in pushes])
        with tf.control_dependencies([self._noted]):
            admitted = [replace(push, grad=copy_gradient(push.grad)) for push in pushes]
        self._applied = super()._at_once(admitted)
        return self._places.move_own([self._applied])

    @property
    def needed(self) -> List[Any]:
        """Return the variables that must be initialised before this worker can join, besides the global variables."""
        return [*super().needed, *self._places.state]

    def is_open(self, session: Any) -> bool:
        """Return whether the chief lets workers join; call it only when every variable has a value."""
        return bool(session.run(self._places.is_open))

    def close(self, session: Any) -> None:
        """As the chief, keep workers from joining while variables are initialised or restored."""
        super().close(session)
        session.run(self._places.close)

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """Free all shards from their workers, join as the chief, let workers join, and return the global step."""
        session.run(self._places.open)
        step = self.join(session, steps)
        session.run(self._places.admit)
        return step

    def join(self, session: Any, steps: int) -> int:
        """Join like an ``AsyncWorker``; the chief also ends a save that its previous process left unfinished."""
        self._places.recall_if_paused(session)
        step = super().join(session, steps)
        self.has_ended = bool(session.run(self._places.has_ended))
        return step

    def begin_reading(self, session: Any) -> None:
        """Start to read batches, from the servers' progress. Raises TrainingError if it belongs to other files."""
        super().begin_reading(session)
        self._places.begin_life(session, self._life)

    def stop_reading(self) -> None:
        """Stop reading batches for this session: a session closes only when no operation in it waits for a batch."""
        self._places.source.new_life()

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Apply one gradient, or wait a moment if this worker has no shard; see ``AsyncWorker.step``.

        Raises:
          tf.errors.AbortedError: the servers refuse the batch, which does not continue a shard's progress; join again.
        """
        source = self._places.source
        try:
            step, loss, (fetched, ends) = self._step_or_wait(session, more)
        except tf.errors.InvalidArgumentError as error:
            if NOT_ADMITTED in str(error):
                raise tf.errors.AbortedError(None, None, "the servers refuse this worker's batch") from error
            raise
        except tf.errors.OpError:
            if source.error is not None:
                raise source.error from None  # the first cause
            raise
        self.has_ended = bool(ends)
        source.note_trained()
        return step, loss, fetched

    def _step_or_wait(self, session: Any, more: Any) -> Tuple[int, float, Any]:
        is_real = self._places.source.next_real() > 0
        self._places.source.rest(not is_real)
        if is_real:
            return super().step(session, [more, self._ends])
        self._gate.pass_through(session)
        time.sleep(_LOOK_S)
        self.waited_s = (self.waited_s or 0.0) + _LOOK_S
        # The empty batch has to go, or the reading waits for it.
        (step, number), ends, _ = session.run([self._unchanged, self._places.has_ended, self._places.place])
        self._gate.note(number)
        self._step = int(step)
        return self._step, math.nan, (None, ends)

    def owes(self, session: Any) -> bool:
        """Return whether this worker itself delays a slow step, and not a hold, a save by the chief, or a late file.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """
        options = tf.RunOptions(timeout_in_ms=_ASK_MS)
        is_held = self._places.source.reader.awaits_file or session.run(self._places.is_paused, options=options)
        return not is_held and super().owes(session)

    def paused(self, session: Any) -> ContextManager[Any]:
        """Return a context manager for a save by the chief; inside it, no worker applies a gradient."""
        return self._places.paused(session)
