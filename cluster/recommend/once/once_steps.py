"""Synchronous steps in which every example counts once, even if a worker dies; ``shard_places`` has the progress.

A synchronous step loses and repeats no example:

    worker i   records the position of its batch, pushes its gradients, then reports to the gate (an accumulator)
    chief      takes the gradients, when all N workers have reported to the gate
    chief      checks the recorded positions, records that the step has begun, updates the variables
    chief      advances the progress of the shards, counts the step, sends the tokens
"""

import math
import time
from typing import Any, List, Sequence, Tuple

import numpy as np

from cluster.recommend.once.shard_places import Places
from cluster.runtime.gradients import copy_gradient, gradient_after, values_of, without_rows
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.accumulators import Accumulator
from cluster.steps.base_worker import StepParts, TornStepError
from cluster.steps.exchange import Push
from cluster.steps.server_notes import ServerNotes
from cluster.steps.sync_worker import SyncWorker
from cluster.steps.token_sync import TokenSyncOptimizer

_GATE = "token_sync/gate"
_REST_S = 0.5  # between two looks for files


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
        self._places, self.measures = places, places.lag
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
        """Send the gradient of one batch, and wait until the chief has counted the step; or rest a moment.

        See ``SyncWorker.step``. Nothing is fetched in a rest: what a callback wants may need a whole step.
        """
        self._was_late = False
        source = self._places.source
        try:
            if self._rests(session):
                session.run(self._places.place)  # the empty batch has to go
                source.note_trained()
                return self._local, math.nan, None
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

    def owes(self, session: Any) -> bool:
        """Return whether the current step waits for this worker, and this worker not for a file; see ``SyncWorker``."""
        return not self._places.source.reader.awaits_file and super().owes(session)

    def _rests(self, session: Any) -> bool:
        """Return whether no worker has a record until files arrive, after a moment; wait for this worker's batch.

        A step needs a record. A worker whose next batch is empty has no shard, until that batch is over. So if any
        worker has a shard, its next batch has records, and the step takes them.
        """
        if self._places.is_idle is None:
            return False
        rests = not self._places.source.next_real() and bool(session.run(self._places.is_idle))
        self._places.source.rest(rests)
        if rests:
            time.sleep(_REST_S)
        return rests

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
        is_idle = False

        def is_settled() -> bool:
            nonlocal is_idle
            is_idle = self._places.is_idle is not None and bool(session.run(self._places.is_idle))
            return is_idle or self._others_gave(session)

        wait_for(f"the other workers' gradients of step {step}", is_settled)
        if is_idle:  # nobody has given to this step: that takes a record, and the record's worker its shard
            return step
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
