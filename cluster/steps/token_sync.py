"""Strictly synchronous training: every worker sends exactly one gradient for every step.

One step, seen from the parameter servers (N workers, worker 0 is the chief):

    worker i   computes a gradient with its copies of the variables  (local step = t)
    worker i   pushes it: one accumulator for every push, on the server of the push's variables
    worker i   counts its contribution, then waits for a token in its own queue
    chief      takes the sum of N gradients from every accumulator      (blocks until N have arrived)
    chief      [clips] applies, global step = t + 1, one token "t + 1" into every queue
    worker i   gets its token: local step = t + 1; fetches the new values into its copies

A worker pushes all gradients before any values come back. ``cluster.steps.overlapped_sync`` does both at the same time.
This module is for updates that need all gradients at once, and for comparison.

The chief's part runs in the same ``session.run`` that pushes the chief's own gradient. So no thread stays blocked
when training ends.

``TokenSyncOptimizer`` builds these operations. ``cluster.steps.sync_worker`` runs them, and has the rules for a worker,
a chief or a parameter server that restarts.
"""

from typing import Any, List, Mapping, Sequence, Tuple, Union

from cluster.runtime.gradients import clip, copy_gradient, divide, gradient_after, values_of
from cluster.runtime.server_state import take_all, take_newest
from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Accumulator, Separate
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import Push, by_server
from cluster.steps.server_notes import CLOSED, SCOPE, ServerNotes, counter
from cluster.variables.local_copies import LocalCopies

_WEIGHT = f"{SCOPE}/weight"  # the name of the push of weights
Meeting = Union[Accumulator, Separate]  # where the workers' gradients of a push meet


class TokenSyncOptimizer(tf.train.SyncReplicasOptimizer):  # type: ignore[misc]
    """``SyncReplicasOptimizer`` with a token queue for every worker and no queue runner.

    The stock class has one queue for all workers. After a step the chief puts N tokens into it, and each worker takes
    one. A quick worker may take two: it sends its gradient, takes its token, and finds the token of another worker that
    was not scheduled in time. Then the quick worker sends two gradients to one step, and the other's gradient is
    dropped. That step is not the mean over all workers. Here no other worker can take the tokens in a worker's queue.

    The stock class applies gradients in a queue runner, a thread of the chief. When training ends, the thread blocks in
    ``take_grad``, and the exit takes two minutes. The class also preloads N tokens, so a chief may train alone before
    the others have joined. Here the chief's own step applies the gradients, and no token is preloaded.

    With backup workers, a step takes the first ``required`` gradients. A slow worker's late gradient is dropped, and
    the worker continues from its own newest token.

    Accumulators compare the *stamp* of a gradient: its step and its era. The era grows whenever the chief initializes
    or restores the variables. So the gradient of a worker that has not noticed a restore is dropped, even if its step
    is the higher one.

    A step's gradient is the sum of all gradients; each worker sends the gradient of its part of the mean loss. Where
    batches vary in size, the ``weight``s of these parts do not add up to 1: the step divides by their sum.

    ``inner`` is the optimizer that applies the mean gradients. Available after ``apply_gradients``:
      waited: float64 seconds that this worker waited for others after it sent its gradient: a scalar, or one for each
        ps in ``waited_at``.
      waited_at: the index of each ps for which a step waits separately; empty if a step waits only once.
      late: with backup workers, whether this worker's gradient came after its step, and was dropped; else None.
      behind: int64, the number of steps by which the oldest received values are too old: 0 unless a server's queue held
        tokens left over from an older step. None if values come after the token.
      local_step, local_era: the step and the era of this worker's next gradient; kept on the worker.
      era: the era of the variables, on the global step's server.
      contributions: int64 [workers] on the global step's server: for each worker, the era plus the number of gradients
        that it has sent since training began. All -1 while the chief prepares the servers. Not saved.
      next_token: waits for this worker's token, adopts it as local step, and returns it.
      servers: each server's record of the gradients that arrived there.
      give: one operation for each push, in the order of ``servers``: sends its gradient, and records that.
      at_once: the feeds of a ``session.run`` that runs only some operations of ``give``.
      drain: empties this worker's token queue.
      copies: the values that this worker receives; forget: clears the wire format's kept rounding errors.
      accumulated: int32 [pushes], the number of gradients in each accumulator (chief only).
      taken: the mean gradients that a step applies, before clipping (chief only).
      finish: takes and applies gradients, counts the step, sends tokens; does not run this worker's model (chief only).
      announce: sends the global step as a token to every worker (chief only).
      empty: one operation for each accumulator, which drops its gradients (chief only).
      set_stamps: makes accumulators drop gradients with a stamp below the fed ``oldest`` (chief only).
      clear_notes: records on every server that this step has no gradient yet (chief only).
      drain_all: empties the token queues (chief only).
      recall: sends the token "join again" to all other workers (chief only).
    """

    def __init__(self, parts: StepParts):
        self.required = parts.num_workers - parts.backup_workers  # gradients that make a step
        super().__init__(parts.optimizer, self.required, parts.num_workers, name=SCOPE)
        self.inner = parts.optimizer
        self.num_workers, self.worker_index = parts.num_workers, parts.worker_index
        self.is_strict = parts.backup_workers == 0
        self.is_chief = parts.worker_index == 0
        self.late: Any = None
        self.behind: Any = None
        self.waited: Any = None
        self.waited_at: List[int] = []
        self.at_once: Mapping[Any, Any] = {}
        self._clip_norm, self._weight, self._exchange = parts.clip_norm, parts.weight, parts.exchange
        self._keeps_apart = self._exchange.in_order
        self._meetings: List[Meeting] = []  # one for each push
        self._accumulators: List[Accumulator] = []  # what they have on the servers

    @property
    def copies(self) -> LocalCopies:
        """Return this worker's copies of the variables, which receive the servers' values."""
        return self._exchange.copies

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """Make the operations of one whole step of this worker.

        Args:
          grads_and_vars: this worker's gradients, (gradient or None, variable) each.
          global_step: the variable that counts steps; its server also has the token queues.

        Returns:
          The token of the next step, an int64 scalar.
        """
        self._global_step = global_step
        self._make_state(global_step)
        self._pushes = self._exchange.pushes(grads_and_vars)
        if self._weight is not None:
            weight, device = self._weight, global_step.device
            self._pushes.append(Push(_WEIGHT, device, weight, weight.shape, [weight], lambda taken: []))
        self.servers = self._make_servers()
        self.give = self._give_all()
        counted = self._count(self.give)
        self._make_own()
        # With backup workers steps are applied in a thread beside this one: see ``Finisher``.
        finish = self._make_chief() if self.is_chief else []
        given_at = self._time_after(counted)
        with tf.control_dependencies([counted, *finish]):
            token = self._wait_for_token()
        self.waited = self._time_after(token) - given_at
        return self._with_copies(token)

    @property
    def _receivers(self) -> List[int]:
        """Return the workers whose queues this graph uses: the chief everybody's, another its own."""
        return list(range(self.num_workers)) if self.is_chief else [self.worker_index]

    def _count(self, pushed: Sequence[Any]) -> Any:
        with tf.control_dependencies([tf.group(*pushed)]), tf.device(self._global_step.device):
            if self.is_strict:  # a step's count may come late, or once more, from a worker that has died meanwhile
                return tf.scatter_max(self.contributions, self.worker_index, self._stamp + 1, use_locking=True)
            return tf.scatter_add(self.contributions, self.worker_index, 1, use_locking=True)

    def _make_own(self) -> None:
        self.next_token = self._wait_for_token()
        self.forget = self._exchange.forget()
        self.drain = self._drain([self._tokens[self.worker_index]])

    def _with_copies(self, token: Any) -> Any:
        stamp = token + self.local_era.read_value()
        with tf.control_dependencies([self.copies.put(self._exchange.fetch([token]), stamp)]):
            return tf.identity(token)

    def _time_after(self, done: Any) -> Any:
        with tf.device(self.local_step.device), tf.device("/cpu:0"):
            return time_after(done)

    def _make_state(self, global_step: Any) -> None:
        self.local_step, self.local_era = counter("local_step", [], 0), counter("local_era", [], 0)
        self._stamp = self.local_step.read_value() + self.local_era.read_value()
        with tf.device(global_step.device):
            self.era = counter("era", [], 0)
            self.contributions = counter("contributions", [self.num_workers], CLOSED)
            self._tokens = {index: self._queue("tokens", index) for index in self._receivers}

    def _queue(self, name: str, worker: int) -> Any:
        return tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name=f"{SCOPE}/{name}_{worker}")

    def _make_servers(self) -> Sequence[ServerNotes]:
        common = (self.num_workers, self.worker_index, self._stamp)
        return [ServerNotes(device, pushes, *common) for device, pushes in by_server(self._pushes).items()]

    def _give_all(self) -> List[Any]:
        """Make the operations that give the gradients, in the order of ``servers``."""
        grads = [push.grad for server in self.servers for push in server.pushes]
        left = iter(grads if self.is_strict else self._notice_late(grads))
        return [
            self._give(server, place, self._meeting(push), next(left))
            for server in self.servers
            for place, push in enumerate(server.pushes)
        ]

    def _give(self, server: ServerNotes, place: int, meeting: Meeting, grad: Any) -> Any:
        given = meeting.give(grad, self._stamp)
        with tf.device(server.device), tf.control_dependencies([given]):
            return server.note_given(place)

    def _meeting(self, push: Push) -> Meeting:
        """Make what collects the gradients of a push: those of each worker apart if they are not merely counted."""
        if self._keeps_apart:
            separate = Separate(push, self.worker_index, self._receivers, self._exchange)
            self._meetings.append(separate)
            self._accumulators += separate.parts
            return separate
        together = Accumulator(push, self.required, self._exchange, self.is_strict)
        self._meetings.append(together)
        self._accumulators.append(together)
        return together

    def _notice_late(self, grads: Sequence[Any]) -> List[Any]:
        """Return the same gradients, sent after the servers' step was read."""
        with tf.control_dependencies(grads):
            self.late = tf.greater(self._global_step.read_value(), self.local_step.read_value())
        with tf.control_dependencies([self.late]):
            return [copy_gradient(grad) for grad in grads]

    def _wait_for_token(self) -> Any:
        """Return the newest token of this worker, and adopt a newer one as local step.

        The number of a token shows whether the token is an older one that was in the queue.
        """
        queue = self._tokens[self.worker_index]
        with tf.device(self._global_step.device):
            token = take_newest(queue)
        adopted = tf.assign(self.local_step, tf.maximum(token, self.local_step.read_value()))
        with tf.control_dependencies([adopted]):
            return tf.identity(token)

    def _make_chief(self) -> List[Any]:
        applied = self._apply()
        self.finish = self._conclude([applied])
        own = self._finish_own(applied)
        self.empty = [accumulator.discard() for accumulator in self._accumulators]
        self.oldest = tf.placeholder(tf.int64, [])
        self.set_stamps = tf.group(*[accumulator.set_step(self.oldest) for accumulator in self._accumulators])
        self.clear_notes = tf.group(*[server.note_all(self._stamp) for server in self.servers])
        with tf.device(self._global_step.device):
            self.accumulated = tf.stack([accumulator.waiting() for accumulator in self._accumulators])
            self.announce = self._send_tokens()
            self.drain_all = self._drain(list(self._tokens.values()))
            self.recall = tf.group(*[self._tokens[index].enqueue(CLOSED) for index in self._receivers[1:]])
        return own

    def _finish_own(self, applied: Any) -> List[Any]:
        """Make the operations that end a step in which this worker's own model runs.

        The variables that the model changes itself must reach the servers. The chief writes these variables when all
        gradients were taken, so that no worker reads them in the middle of the step. The chief writes them before it
        counts the step, so that every worker has them in the next step.
        """
        publish = self._exchange.publish
        if not self.is_strict:
            return [publish()] if publish else []
        if publish is None:
            return [self.finish]
        with tf.control_dependencies([applied]):
            return [self._conclude([publish()])]

    def _conclude(self, after: Sequence[Any]) -> Any:
        """Make the operation that counts the step and sends tokens for it, ``after`` all else."""
        with tf.device(self._global_step.device):
            with tf.control_dependencies(after):
                counted = tf.assign_add(self._global_step, 1)
            with tf.control_dependencies([counted]):
                return self._send_tokens()

    def _apply(self) -> Any:
        """Make the operation that takes the mean gradients and updates the variables."""
        taken = self._take()
        self.taken = [grad for grad, _ in taken]
        with tf.device(self._global_step.device):
            pairs = [pair for grad, push in clip(taken, self._clip_norm) for pair in push.unpack(grad)]
            return self._opt.apply_gradients(pairs)

    def _take(self) -> List[Tuple[Any, Push]]:
        """Return the mean gradients of a step and the push of each, once the gradients of all are there."""
        taken = [(meeting.take(), meeting.push) for meeting in self._meetings]
        if len(taken) > 1:  # no variable changes while a worker that starts again may compute the rest of its gradients
            with tf.device(self._global_step.device):
                all_there = tf.group(*[values_of(grad) for grad, _ in taken])
            taken = [(gradient_after(all_there, grad), push) for grad, push in taken]
        weights = [grad for grad, push in taken if push.name == _WEIGHT]
        return [(divide(grad, weights[0]), push) for grad, push in taken if push.name != _WEIGHT] if weights else taken

    def _drain(self, queues: Sequence[Any]) -> Any:
        with tf.device(self._global_step.device):
            return tf.group(*[take_all(queue) for queue in queues])

    def _send_tokens(self) -> Any:
        # tf.fill makes a new tensor: a queued alias of the variable would change with it.
        token = tf.fill([1], self._global_step.read_value())
        return tf.group(*[queue.enqueue_many(token) for queue in self._tokens.values()])


def time_after(done: Any) -> Any:
    """Return the time when the operation ``done`` has run, in float64 seconds since 1970, on the current device."""
    with tf.control_dependencies([done]):
        return tf.timestamp()


def empty_accumulators(session: Any, optimizer: TokenSyncOptimizer, oldest: int) -> None:
    """As the chief, empty the accumulators; from now on they drop gradients whose stamp is less than ``oldest``."""
    session.run(optimizer.set_stamps, {optimizer.oldest: oldest})  # first: nothing older comes in then
    waiting = session.run(optimizer.accumulated)
    session.run([take for take, number in zip(optimizer.empty, waiting) if number])
    session.run(optimizer.set_stamps, {optimizer.oldest: oldest})  # taking counts one step further
