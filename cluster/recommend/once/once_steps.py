"""Training steps in which every example counts once, even if a worker dies; ``shard_places`` has the progress.

A synchronous step loses and repeats no example:

    worker i   records the position of its batch, pushes its gradients, then reports to the gate (an accumulator)
    chief      takes the gradients, when all N workers have reported to the gate
    chief      checks the recorded positions, records that the step has begun, updates the variables
    chief      advances the progress of the shards, counts the step, sends the tokens

In asynchronous training, the death of a process may let the examples of one batch count twice; see ``own_places``.
"""

import time
from dataclasses import replace
from typing import Any, ContextManager, List, Sequence, Tuple

import numpy as np

from cluster.recommend.once.own_places import NOT_ADMITTED, OwnPlaces
from cluster.recommend.once.shard_places import Places
from cluster.runtime.gradients import copy_gradient, divide, gradient_after, values_of, without_rows
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.accumulators import Accumulator
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import HoldGate, StepParts, TornStepError
from cluster.steps.exchange import Push
from cluster.steps.server_notes import ServerNotes
from cluster.steps.sync_worker import SyncWorker
from cluster.steps.token_sync import TokenSyncOptimizer

_GATE = "token_sync/gate"


class OnceSyncOptimizer(TokenSyncOptimizer):
    """A ``TokenSyncOptimizer`` that also advances the progress of shards: each step adds its batches to ``places``.

    The gradients of different workers stay separate. Each worker reports to the *gate*, an accumulator, after it has
    pushed all its gradients. The chief takes gradients only after all reports. If it dies earlier, nothing has changed.
    """

    def __init__(self, parts: StepParts, places: Places):
        super().__init__(parts)
        self._places, self._keeps_apart = places, True

    def _make_servers(self) -> Sequence[ServerNotes]:
        return []  # a worker may give again what its predecessor gave

    def _give_all(self) -> List[Any]:
        with tf.control_dependencies([self._places.note(self._stamp)]):
            # An optimizer may change the rows of a table even where their gradient is 0.
            is_empty = tf.equal(self._weight, 0)
            grads = [without_rows(copy_gradient(push.grad), is_empty) for push in self._pushes]
        given = [self._meeting(push).give(grad, self._stamp) for push, grad in zip(self._pushes, grads)]
        with tf.control_dependencies(given), tf.device(self._global_step.device):
            one = tf.ones([])
        push = Push(_GATE, self._global_step.device, one, one.shape, [one], lambda taken: [])
        self._gate = Accumulator(push, self.num_workers, self._exchange)
        self._accumulators.append(self._gate)
        return [self._gate.give(one, self._stamp)]

    def _take(self) -> List[Tuple[Any, Push]]:
        with tf.control_dependencies([self._gate.take()]):
            taken = super()._take()
        begun, self._rows = self._places.begin_step(self._stamp, [values_of(grad) for grad, _ in taken])
        return [(gradient_after(begun, grad), push) for grad, push in taken]

    def _conclude(self, after: Sequence[Any]) -> Any:
        with tf.control_dependencies(after):
            moved = self._places.move(tf.identity(self._rows))
        return super()._conclude([moved])


class OnceWorker(SyncWorker):
    """The synchronous steps of one worker whose batches come from shards; each step advances the shards' progress.

    Two rules differ from a ``SyncWorker``. The *predecessor* of a worker is the previous process of the same task:

    * If a worker is not sure whether its predecessor sent a gradient, it sends the gradient of the same batch again.
      The servers use one of the two gradients.
    * If the predecessor of a chief may have applied only a part of a step, the chief refuses to join.

    ``has_ended``, available after ``join`` or ``open``: whether all epochs of all shards are trained.
    """

    def __init__(self, parts: StepParts, places: Places):
        super().__init__(parts, OnceSyncOptimizer(parts, places))
        self._places = places
        with tf.control_dependencies([self._token]):
            self._ends = tf.identity(places.has_ended_now())

    @property
    def needed(self) -> List[Any]:
        """Return the variables that must be initialised before this worker can join, besides the global variables."""
        return [*super().needed, *self._places.state]

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """Free all shards from their workers, join as the chief like a ``SyncWorker``, and return the global step."""
        session.run(self._places.open)
        step = super().open(session, steps, is_new)
        self.has_ended = bool(session.run(self._places.has_ended))
        return step

    def join(self, session: Any, steps: int) -> int:
        """Join the other workers, and return the global step.

        Raises:
          TornStepError: this worker is the chief, and its previous process began a step but did not count it.
        """
        if self._optimizer.is_chief and session.run(self._places.is_torn):
            raise TornStepError
        if session.run(self._places.has_ended):
            steps = 0
        step = super().join(session, steps)
        self.has_ended = bool(session.run(self._places.has_ended))
        return step

    def begin_reading(self, session: Any) -> None:
        """Start to read batches, from the progress that the servers store.

        Raises:
          tf.errors.AbortedError: a step began or ended after this worker had joined.
          TrainingError: the progress on the servers belongs to other files.
        """
        super().begin_reading(session)
        self._places.begin(session, self._local, self._era)

    def stop_reading(self) -> None:
        """Stop reading batches for this session: a session closes only when no operation in it waits for a batch."""
        self._places.source.new_life()

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Send the gradient of one batch, and wait until the chief has counted the step; see ``SyncWorker.step``."""
        self._was_late = False
        source = self._places.source
        try:
            step, loss, (fetched, ends) = super().step(session, [more, self._ends])
            self.has_ended = bool(ends)
            if self._was_late:  # it was read before the step was over
                self.has_ended = bool(session.run(self._places.has_ended))
        except tf.errors.OpError:
            if source.error is not None:
                raise source.error from None  # the first cause
            raise
        source.note_trained()
        return step, loss, fetched

    def _wait_for_newer(self, session: Any, token: int) -> int:
        self._was_late = token <= self._local
        return super()._wait_for_newer(session, token)

    def _has_given(self, session: Any, options: Any = None) -> Any:
        """Return who has given all gradients of the current step, as bool [1, workers]."""
        return session.run([self._optimizer.contributions], options=options)[0].reshape([1, -1]) > self._stamp

    def _rejoin_as_chief(self, session: Any, step: int, steps: int) -> int:
        session.run(self._optimizer.announce)
        if self._optimizer.num_workers == 1:
            return self.open(session, steps)
        wait_for(f"the other workers' gradients of step {step}", lambda: self._others_gave(session))
        has_given = bool(session.run(self._optimizer.contributions)[0] > self._stamp)
        if not self._is_whole(np.asarray(session.run(self._optimizer.accumulated)), has_given):
            raise TornStepError
        if has_given:
            session.run(self._optimizer.finish)
            return step + 1
        return step

    def _is_whole(self, waiting: Any, has_given: bool) -> bool:
        """Return whether nothing has been taken of a step that all others have given to.

        Args:
          waiting: int32 [pushes * workers + 1], the gradients in each accumulator, the gate's last.
          has_given: whether this worker's predecessor had given, too.
        """
        workers = self._optimizer.num_workers
        given = waiting[:-1].reshape([-1, workers])[:, 0 if has_given else 1 :]
        return bool(given.min() > 0 and waiting[-1] >= workers - (not has_given))


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
        self._places, global_step = places, parts.global_step
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
        if self._places.source.next_real():
            return super().step(session, [more, self._ends])
        self._gate.pass_through(session)
        time.sleep(_LOOK_S)
        self.waited_s = (self.waited_s or 0.0) + _LOOK_S
        # The empty batch has to go, or the reading waits for it; a loss need not depend on it.
        fetches = [self._unchanged, self._loss, [more, self._places.has_ended], self._places.place]
        (step, number), loss, fetched, _ = session.run(fetches)
        self._gate.note(number)
        self._step = int(step)
        return self._step, float(loss), fetched

    def owes(self, session: Any) -> bool:
        """Return whether this worker itself delays a slow step, and not a hold or a save by the chief.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """
        options = tf.RunOptions(timeout_in_ms=_ASK_MS)
        return super().owes(session) and not session.run(self._places.is_paused, options=options)

    def paused(self, session: Any) -> ContextManager[Any]:
        """Return a context manager for a save by the chief; inside it, no worker applies a gradient."""
        return self._places.paused(session)
