"""A strictly synchronous step in which pushes and pulls run at the same time.

A network card can send while it receives. A step that first pushes every gradient, then pulls every variable, uses one
direction at a time, and takes twice as long as necessary. Here each bucket is exchanged separately, with its server:

    worker i   pushes bucket j
    chief      takes the sum of N gradients from the bucket's accumulator   (blocks until N have arrived)
    chief      updates the bucket's variables, then puts a token into each worker's queue of that server
    worker i   fetches the new values into its copies, when it has its token for bucket j

The order makes the step quick. All workers push the buckets of a server in the same order. They push bucket j only
when the values of bucket j - WINDOW have come back (``cluster.steps.exchange``). Backpropagation knows the gradients of
the first buckets first, so pushing begins while backpropagation still runs. Tokens come in the same order, so a worker
needs only one queue on each server.

The order also makes the step strict. A worker waits for the token of bucket j, so it computes step t + 1 with the
values of step t. Nothing changes these values until the worker has sent its gradient of step t + 1.

Sending slices in order, with a limit on how many are under way, is the idea of Y. Peng et al., "A Generic Communication
Scheduler for Distributed DNN Training Acceleration", SOSP 2019 (ByteScheduler), and A. Jayarajan et al.,
"Priority-based Parameter Propagation for Distributed DNN Training", SysML 2019.

For each push, a server records the stamp (step and era) of the last applied step, and of each worker's last gradient.
After a worker or the chief dies in a step, ``OverlappedWorker`` decides from these records how to continue.
"""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from cluster.runtime.server_state import ManyQueues
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import WINDOW, SendWindow, by_server
from cluster.steps.server_notes import those
from cluster.steps.server_queues import ChiefServerQueues, ServerQueues, count_returning
from cluster.steps.sync_worker import ASK_MS, SyncWorker
from cluster.steps.token_sync import Meeting, TokenSyncOptimizer
from cluster.updates.incremental_apply import IncrementalApply


class OverlappedSyncOptimizer(TokenSyncOptimizer):
    """A ``TokenSyncOptimizer`` that exchanges its pushes one by one.

    Available after ``apply_gradients``, besides the attributes of ``TokenSyncOptimizer``:
      servers: the record and the queues of each server.
      give: one operation for each push, as in ``TokenSyncOptimizer``, but each waits for its push's turn.
      at_once: the feeds of a ``session.run`` in which operations of ``give`` do not wait for their turns.
      finish_now: one operation for each push, which takes the gradients, updates the variables, records the push as
        applied, and sends no token (chief only).
      release: releases all workers from waiting for tokens in the rest of the step (chief only).
      places: a placeholder for each server, int32 [n]: the indices of pushes on this server (chief only).
      settle: one operation for each server, which records the pushes at the fed ``places`` as applied (chief only).
      conclude: counts the step and sends tokens for it, once all pushes were applied (chief only).
    """

    servers: Sequence[ServerQueues]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """Make the operations of one whole step of this worker; see ``TokenSyncOptimizer``."""
        self._global_step = global_step
        self._make_state(global_step)
        self._pushes = self._exchange.pushes(grads_and_vars)
        self._next_stamp = self._stamp + 1
        self.servers = self._make_servers()
        self._window = SendWindow()
        self._pieces = IncrementalApply(self._opt)
        self.taken = []
        self.finish_now: List[Any] = []
        self.give = [
            self._exchange_push(server, place) for server in self.servers for place in range(len(server.pushes))
        ]
        self.at_once = self._window.at_once
        counted = self._count(self.give)
        self._make_own()
        finish = self._make_chief() if self.is_chief else []
        with tf.control_dependencies([counted, *finish]):
            token = self._wait_for_token()
        servers = [server for server in self.servers if server.is_timed]
        self.waited = tf.stack([server.seconds_waited() for server in servers])
        self.waited_at = [server.index for server in servers]
        self.behind = self._next_stamp - tf.reduce_min(tf.stack([server.oldest_token() for server in servers]))
        with tf.control_dependencies([self.copies.put(self._window.values, self._next_stamp)]):
            return tf.identity(token)

    def _make_servers(self) -> Sequence[ServerQueues]:
        of, common = by_server(self._pushes), (self.num_workers, self._receivers, self._stamp)
        if not self.is_chief:
            return [ServerQueues(device, pushes, *common) for device, pushes in of.items()]
        many = ManyQueues(self.num_workers)
        return [ChiefServerQueues(device, pushes, *common, many) for device, pushes in of.items()]

    @property
    def _chiefs_servers(self) -> List[ChiefServerQueues]:
        """Return the records of all servers on the chief, and none on another worker."""
        return [server for server in self.servers if isinstance(server, ChiefServerQueues)]

    def _exchange_push(self, server: ServerQueues, place: int) -> Any:
        """Exchange one push with its server; return the operation that notes its gradient as given."""
        push = server.pushes[place]
        meeting = self._meeting(push)
        if isinstance(server, ChiefServerQueues):
            self._make_update(server, place, meeting)
        if push.bucket is None:
            return self._give(server, place, meeting, push.grad)
        given = self._give(server, place, meeting, self._window.wait(push).grad)
        # The waits of pushes that are not under way together add up to what the step has waited.
        token = server.wait(given, is_timed=place % WINDOW == 0)
        sent = self._exchange.read_prepared(push.bucket, [token])
        self._window.note_return(push, self._exchange.receive(push.bucket, sent))
        return given

    def _make_update(self, server: ChiefServerQueues, place: int, meeting: Meeting) -> None:
        taken = meeting.take()
        self.taken.append(taken)
        with tf.device(server.device):
            updated = self._pieces.update(meeting.push.unpack(taken))
        bucket = server.pushes[place].bucket
        if bucket is not None:
            updated = self._exchange.prepare(bucket, updated)
            server.send_token(updated)
        self.finish_now.append(server.note_applied(place, updated))

    def _apply(self) -> Any:
        self.conclude = self._conclude([self._pieces.finish_alone()])
        sent = [each for server in self._chiefs_servers for each in server.last_sent]
        with tf.control_dependencies([tf.group(*self.finish_now, *sent)]):
            return self._pieces.finish()

    def _make_own(self) -> None:
        super()._make_own()
        self.drain = tf.group(self.drain, *[server.drain() for server in self.servers])

    def _make_chief(self) -> List[Any]:
        finish = super()._make_chief()
        self.drain_all = tf.group(self.drain_all, *[server.drain_all() for server in self._chiefs_servers])
        self.release = tf.group(*[server.release() for server in self._chiefs_servers])
        self.recall = tf.group(self.recall, self.release)
        self.places = [tf.placeholder(tf.int32, [None]) for _ in self._chiefs_servers]
        self.settle = [server.note_applied_at(places) for server, places in zip(self._chiefs_servers, self.places)]
        self.clear_notes = tf.group(self.clear_notes, *self._exchange.clear())
        return finish


class Notes(NamedTuple):
    """The progress of every push, as the servers have recorded it. Pushes are in the order of the optimizer's servers.

    ``applied``, int64 [pushes], is the stamp after the last step in which a push was applied. ``given``, int64 [pushes,
    workers], is the stamp after the last step for which a worker sent its gradient of a push.
    """

    applied: Any
    given: Any


class OverlappedWorker(SyncWorker):
    """A worker that takes steps in which the chief applies pushes one by one.

    When a task dies in step t, some pushes have been sent or applied, and others have not. No task undoes a push:

    * A restarted worker that has sent nothing for step t begins the step as usual.
    * A restarted worker that has sent some pushes sends the others now, and waits until the step is over. The gradients
      in the later pushes are of another batch, and some variables may be a step newer. Each push still has one gradient
      of every worker.
    * A restarted chief does the same. Once all other workers have begun the step, it releases the waiting workers, and
      applies each push that has all its gradients. A push whose gradients were taken, but which was not recorded as
      applied, counts as applied: its update may be missing. When all pushes are applied, the chief counts the step.
      Then a worker that continued without a token fetches all values.

    The restart of a server must end every step that is under way, so that all workers join again. So the chief's step
    runs on each server until the last push of all servers is applied: see ``IncrementalApply.finish``.
    """

    overlaps = True
    _optimizer: OverlappedSyncOptimizer

    def __init__(self, parts: StepParts):
        super().__init__(parts, OverlappedSyncOptimizer(parts))

    def owes(self, session: Any) -> bool:
        """Return whether the current step waits for a push that this worker could send now.

        On the chief, a push that it could apply counts too.

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

    def _notes(self, session: Any, options: Optional[Any] = None) -> Notes:
        servers = self._optimizer.servers
        found = session.run([(server.applied, server.given) for server in servers], options=options)
        given = [given.reshape([-1, self._optimizer.num_workers]) for _, given in found]
        return Notes(np.concatenate([applied for applied, _ in found]), np.concatenate(given))

    def _rejoin(self, session: Any, step: int) -> int:
        return self._over(session, super()._rejoin(session, step))

    def _rejoin_as_chief(self, session: Any, step: int, steps: int) -> int:
        session.run(self._optimizer.announce)
        if not self._has_given(session)[:, 0].any():
            return self._begin(session, step)
        wait_for(f"the other workers to begin step {step}", lambda: self._others_began(session))
        session.run(self._optimizer.release)  # what is left of the step is applied in another order than tokens have
        self._give_rest(session)
        wait_for(f"the other workers' gradients of step {step}", lambda: self._has_applied_all(session))
        session.run([self._optimizer.conclude])
        self._count(session, self._stamp + 1)
        return self._over(session, step + 1)

    def _others_began(self, session: Any) -> Any:
        """Return whether no other worker may still drop its tokens, as one does that begins the step."""
        return self._has_given(session)[:, 1:].any(axis=0).all()

    def _over(self, session: Any, step: int) -> int:
        session.run(self._optimizer.drain)  # of the pushes of the step that was caught up with
        return step

    def _has_applied_all(self, session: Any) -> bool:
        """Apply the pushes that can be applied; return whether none is left."""
        notes = self._notes(session)
        waiting = session.run(self._optimizer.accumulated)  # after the notes: what they name is in there or taken
        left = notes.applied <= self._stamp
        complete = waiting >= self._optimizer.num_workers
        taken = (notes.given > self._stamp).all(axis=1) & ~complete
        session.run(those(self._optimizer.finish_now, left & complete))
        session.run(self._optimizer.settle, dict(zip(self._optimizer.places, self._by_server(left & taken))))
        return not (left & ~complete & ~taken).any()

    def _by_server(self, chosen: Any) -> List[Any]:
        """Return the places of the ``chosen`` pushes on each server."""
        lengths = [len(server.pushes) for server in self._optimizer.servers]
        return [np.flatnonzero(of_server) for of_server in np.split(chosen, np.cumsum(lengths)[:-1])]


def may_be_given(applied: Any, servers: Sequence[ServerQueues]) -> Any:
    """Return, for each push, whether a worker may send it now, as bool [pushes].

    The turn of a push comes when the push ``WINDOW`` places before it, on the same server, is applied.

    Args:
      applied: whether each push of this step is applied, bool [pushes].
    """
    may = np.ones(len(applied), bool)
    start = 0
    for server in servers:
        for place in range(WINDOW, count_returning(server.pushes)):
            may[start + place] = applied[start + place - WINDOW]
        start += len(server.pushes)
    return may
