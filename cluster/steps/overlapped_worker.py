"""Take overlapped steps on one worker, and rejoin in the middle of a step."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import WINDOW
from cluster.steps.overlapped_sync import OverlappedSyncOptimizer
from cluster.steps.server_queues import ServerQueues, count_returning
from cluster.steps.sync_worker import ASK_MS, SyncWorker


class Notes(NamedTuple):
    """The progress of every push that the servers noted.

    Pushes are in the order of the optimizer's servers. Both numbers are the stamp after the last step of each:
    ``applied`` is int64 [pushes], ``given`` int64 [pushes, workers].
    """

    applied: Any
    given: Any


class OverlappedWorker(SyncWorker):
    """Take the steps of one worker, in which the chief applies pushes one by one.

    A task that dies leaves some pushes of step t given or applied, and others not. No task undoes any of these pushes:

    * A worker that has given nothing to step t begins the step, like a worker that never died.
    * A worker that has given some pushes gives the others now, and waits until the step is over. The gradient of these
      pushes is of another batch, and of variables of which some are a step further. Each push has one gradient of every
      worker.
    * A chief does the same, and takes over: it releases all waiting workers, and applies each push that has all its
      gradients. A push that was taken, but not noted as applied, counts as applied: its update may be missing.
      When all pushes are applied, the chief counts the step. A worker that continued without a token fetches all values
      then.
    """

    overlaps = True
    _optimizer: OverlappedSyncOptimizer

    def __init__(self, parts: StepParts):
        super().__init__(parts, OverlappedSyncOptimizer(parts))

    def owes(self, session: Any) -> bool:
        """Return whether the current step waits for a push that this worker could give now.

        On the chief, a push that the chief could apply counts too.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """
        if not self.is_open(session, tf.RunOptions(timeout_in_ms=ASK_MS)):
            return self._optimizer.is_chief
        notes = self._notes(session, tf.RunOptions(timeout_in_ms=ASK_MS))
        given, applied = notes.given > self._stamp, notes.applied > self._stamp
        if self._optimizer.is_chief and (applied.all() or (given.all(axis=1) & ~applied).any()):
            return True
        own = given[:, self._optimizer.worker_index]
        return bool((~own & may_be_given(applied, self._optimizer.servers)).any())

    @property
    def _stamp(self) -> int:
        return self._era + self._local

    def _notes(self, session: Any, options: Optional[Any] = None) -> Notes:
        servers = self._optimizer.servers
        found = session.run([(server.applied, server.given) for server in servers], options=options)
        given = [given.reshape([-1, self._optimizer.num_workers]) for _, given in found]
        return Notes(np.concatenate([applied for applied, _ in found]), np.concatenate(given))

    def _rejoin(self, session: Any, step: int) -> int:
        if not self._has_given(session):
            return self._begin(session, step)
        self._give_rest(session)
        session.run(self._count_own, {self._number: step + 1})
        return self._over(session, self._wait_for_newer(session, step))

    def _rejoin_as_chief(self, session: Any, step: int, steps: int) -> int:
        session.run(self._optimizer.announce)
        if not self._has_given(session):
            return self._begin(session, step)
        session.run(self._optimizer.release)  # what is left of the step is applied in another order than tokens have
        self._give_rest(session)
        wait_for(f"the other workers' gradients of step {step}", lambda: self._has_applied_all(session))
        session.run([self._optimizer.conclude])
        session.run(self._count_own, {self._number: step + 1})
        return self._over(session, step + 1)

    def _has_given(self, session: Any) -> bool:
        return bool((self._notes(session).given[:, self._optimizer.worker_index] > self._stamp).any())

    def _begin(self, session: Any, step: int) -> int:
        session.run(self._optimizer.drain)  # no newer token can be there without this worker's gradient
        session.run(self._count_own, {self._number: step})
        return step

    def _over(self, session: Any, step: int) -> int:
        session.run(self._optimizer.drain)  # of the pushes of the step that was caught up with
        return step

    def _give_rest(self, session: Any) -> None:
        given = self._notes(session).given[:, self._optimizer.worker_index] > self._stamp
        self._fill_copies(session)
        self.begin_reading(session)
        session.run(_those(self._optimizer.give, ~given), self._optimizer.at_once)

    def _has_applied_all(self, session: Any) -> bool:
        """Apply the pushes that can be applied; return whether none is left."""
        notes = self._notes(session)
        waiting = session.run(self._optimizer.accumulated)  # after the notes: what they name is in there or taken
        left = notes.applied <= self._stamp
        complete = waiting >= self._optimizer.num_workers
        taken = (notes.given > self._stamp).all(axis=1) & ~complete
        session.run(_those(self._optimizer.finish_now, left & complete))
        session.run(self._optimizer.settle, dict(zip(self._optimizer.places, self._by_server(left & taken))))
        return not (left & ~complete & ~taken).any()

    def _by_server(self, chosen: Any) -> List[Any]:
        """Return the places of the ``chosen`` pushes on each server."""
        lengths = [len(server.pushes) for server in self._optimizer.servers]
        return [np.flatnonzero(of_server) for of_server in np.split(chosen, np.cumsum(lengths)[:-1])]


def may_be_given(applied: Any, servers: Sequence[ServerQueues]) -> Any:
    """Return the pushes that a worker may give now, as bool [pushes].

    A push's turn has come when the push a window before it, of the same server, is applied.

    Args:
      applied: bool [pushes], of this step.
    """
    may = np.ones(len(applied), bool)
    start = 0
    for server in servers:
        for place in range(WINDOW, count_returning(server.pushes)):
            may[start + place] = applied[start + place - WINDOW]
        start += len(server.pushes)
    return may


def _those(operations: List[Any], chosen: Any) -> List[Any]:
    return [operation for operation, is_chosen in zip(operations, chosen) if is_chosen]
