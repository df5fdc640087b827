"""Take strictly synchronous steps on one worker, and rejoin after a restart."""

import contextlib
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from cluster.protocol.flight_records import Wait
from cluster.runtime.gradients import scalars_of
from cluster.runtime.tensors import cond
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.base_worker import BaseWorker, Finisher, StepParts
from cluster.steps.server_notes import CLOSED, era_after, those
from cluster.steps.token_sync import TokenSyncOptimizer, empty_accumulators

ASK_MS = 3000  # how long a question beside a step may take


class SyncWorker(BaseWorker):
    """A worker that takes strictly synchronous steps in a session.

    After a restart, a task acts on the servers' global step g, and on their record of each worker's gradients in it.

    * A worker without a recorded gradient takes step g and pushes without a token, because the token may be lost. The
      worker ignores tokens that are not newer.
    * If only some pushes of a worker are recorded, its previous process died between two pushes. Then the worker sends
      the others, from another batch but the same variables: no push is applied before all have arrived. If all its
      pushes are recorded, the worker only waits for its token.
    * A chief first sends every worker the token g again, which its previous process may not have sent. Once all others
      have sent their gradients of step g, it acts like a worker. If accumulators are empty, its previous process died
      while applying: the chief counts the step as done, and variables not yet updated miss that one update.
    * When a server restarts without its variables, the chief closes the cluster, empties queues and accumulators,
      restores the newest checkpoint, and opens the cluster again. A worker that waits for its token on another server
      would not notice. So the chief sends that worker the token ``CLOSED``, and the worker joins again.
    """

    waited_s: float = 0.0

    def __init__(self, parts: StepParts, optimizer: Optional[TokenSyncOptimizer] = None):
        self._optimizer = optimizer = optimizer or TokenSyncOptimizer(parts)
        self._token = optimizer.apply_gradients(parts.grads_and_vars, parts.global_step)
        self._global_step, self._loss, self._beginnings = parts.global_step, parts.loss, parts.beginnings
        self._gradients = [grad for grad, _ in parts.grads_and_vars]
        self._local = self._era = 0
        self._given = 0  # what the servers had counted of this worker before this step
        self._exact = optimizer.is_strict
        self._copies = optimizer.copies
        self._behind = [] if optimizer.behind is None else [optimizer.behind]
        self._finisher: Optional[Finisher] = None
        self._make_assignments()

    def _make_assignments(self) -> None:
        optimizer = self._optimizer
        self._number = tf.placeholder(tf.int64, [])
        self._take_step = tf.assign(optimizer.local_step, self._number)
        self._take_era = tf.assign(optimizer.local_era, self._number)
        self._set_era = tf.assign(optimizer.era, self._number)
        has_era = tf.is_variable_initialized(optimizer.era)
        none = tf.constant(0, tf.int64)
        self._last_era = cond(has_era, optimizer.era.read_value, lambda: none)
        with tf.device(optimizer.contributions.device):
            everyone = tf.fill([optimizer.num_workers], self._number)
            self._count_all = tf.assign(optimizer.contributions, everyone)
            self._count_own = tf.scatter_update(optimizer.contributions, optimizer.worker_index, self._number)
            self._without_value = tf.size(tf.report_uninitialized_variables([optimizer.contributions]))
            self._skip = tf.assign_add(self._global_step, 1)

    @property
    def needed(self) -> List[Any]:
        """Return the variables, other than TensorFlow's global ones, that need a value before this worker can join."""
        return [self._optimizer.contributions, self._optimizer.era]

    def is_open(self, session: Any, options: Any = None) -> bool:
        """Return whether the chief lets workers join. Call this method only when every variable has a value."""
        return bool(session.run(self._optimizer.contributions, options=options).min() > CLOSED)

    def close(self, session: Any) -> None:
        """Keep workers from joining while the chief initialises or restores variables; make joined workers rejoin."""
        opened_before = session.run(self._without_value) == 0
        session.run(self._count_all, {self._number: CLOSED})
        if opened_before:
            session.run(self._optimizer.drain_all)
            session.run(self._optimizer.recall)

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """As the chief, prepare the servers, let workers join, and join, once every variable has its value.

        Args:
          steps: the global step at which training ends; used only with backup workers.
          is_new: whether the servers hold initial values that equal those of this worker's own variables.
        """
        step = int(session.run(self._global_step))
        session.run(self._set_era, {self._number: era_after(session.run(self._last_era), time.time())})
        self._set_local(session, step)
        self._given = self._stamp
        empty_accumulators(session, self._optimizer, self._stamp)
        session.run([self._optimizer.clear_notes, self._optimizer.drain, self._optimizer.forget])
        session.run(self._count_all, {self._number: self._stamp})
        # The others fetch the values meanwhile, and nothing changes these before this worker gives a gradient.
        self._copies.keep(session) if is_new else self._fill_copies(session)
        self._start_finisher(session, steps - step)
        return step

    def join(self, session: Any, steps: int) -> int:
        """Join workers that are already training; return the global step.

        Args:
          steps: the global step at which training ends; from there on the worker takes no step.

        Raises:
          TimeoutError: a chief that joins waited too long for the other workers.
        """
        step = int(session.run(self._global_step))
        self._set_local(session, step)
        if step < steps and not self._optimizer.is_chief:
            step = self._rejoin(session, step)
        elif step < steps:
            step = self._rejoin_as_chief(session, step, steps)
        elif self._optimizer.is_chief:
            session.run(self._optimizer.announce)  # its predecessor may have died before the last tokens
        self._set_local(session, step)
        self._fill_copies(session)
        return step

    def _fill_copies(self, session: Any) -> None:
        self._copies.fill(session, self._local, [self._optimizer.forget])

    def _load(self, session: Any) -> None:
        """Give the worker's variables the values of the step that begins."""
        stamp = self._copies.load(session, self._local)
        if stamp is not None and stamp != self._era + self._local:  # left behind by a session that was given up
            self.refresh(session)

    def refresh(self, session: Any) -> None:
        """Fetch the newest values into the worker's variables immediately."""
        self.renew(session)
        self._copies.load(session, self._local)

    def renew(self, session: Any) -> None:
        """Fetch the newest values, between two steps, for this worker's next step."""
        self._fill_copies(session)

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """Stop the thread that applies steps in a run with backup workers; see ``BaseWorker.held``."""
        if self._finisher is None:
            yield step
            return
        with self._finisher.crossing.closed():
            yield int(session.run(self._global_step))

    def _start_finisher(self, session: Any, steps: int) -> None:
        if self._optimizer.is_chief and not self._exact:
            self._finisher = Finisher(session, self._optimizer.finish, steps)
            self._finisher.start()

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Send one gradient and wait for the step; return the new global step, the loss, and the values of ``more``.

        Raises:
          tf.errors.AbortedError: variables are being restored; join again, in a new session.
        """
        late = [] if self._exact else [self._optimizer.late]
        try:
            self._load(session)
            fetches = [self._token, self._loss, more, late, self._optimizer.waited, self._behind]
            token, loss, fetched, late, waited_s, behind = session.run(fetches)
            self.dropped += int(any(late))
            self._given += 1
            self._note_waits(waited_s)
            step = self._wait_for_newer(session, int(token))
            if any(behind):
                session.run(self._optimizer.drain)
                self._fill_copies(session)
            return step, float(loss), fetched
        except (tf.errors.OpError, RuntimeError):
            if self._finisher is not None and self._finisher.error is not None:
                raise self._finisher.error from None  # the first cause: it has closed this session
            raise

    def _note_waits(self, waited_s: Any) -> None:
        """Note the seconds that a step waited: in all, float64 []; or for each ps, [ps], whose waits go on together."""
        self.waited_s += max(0.0, float(np.mean(waited_s)))
        if waited_s.ndim:
            longest = int(waited_s.argmax())
            self.longest_wait = Wait(self._optimizer.waited_at[longest], max(0.0, float(waited_s[longest])))

    def owes(self, session: Any) -> bool:
        """Return whether the current step waits for this worker, according to the servers' record.

        Once all workers have sent their gradients, the step waits for the chief, which applies it.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """
        options = tf.RunOptions(timeout_in_ms=ASK_MS)
        counted = session.run(self._optimizer.contributions, options=options)
        if counted.min() == CLOSED:
            return self._optimizer.is_chief  # which prepares the servers
        if not self._exact:
            return int(counted[self._optimizer.worker_index]) <= self._given
        given = self._has_given(session, options)
        return bool(self._optimizer.is_chief and given.all()) or not given[:, self._optimizer.worker_index].all()

    def scalars(self) -> Dict[str, Any]:
        """As the chief, make tensors that describe a step, by name; call this before the graph is finalized."""
        if self._exact:
            return scalars_of(self._optimizer.inner, self._optimizer.taken)
        own = scalars_of(self._optimizer.inner, self._gradients)  # of this worker's part of the mean loss
        return {**own, "gradient_norm": own["gradient_norm"] * self._optimizer.required}

    def account(self, session: Any) -> str:
        """Return one line with the number of gradients that each worker has sent."""
        counted = session.run(self._optimizer.contributions) - self._era
        return "gradients given by each worker: " + " ".join(map(str, counted))

    def _wait_for_newer(self, session: Any, token: int) -> int:
        if token > self._local:
            self._local = token
            return token
        while token <= self._local:  # left behind by a predecessor, or by a chief that joined
            if token == CLOSED:
                raise tf.errors.AbortedError(None, None, "the chief has closed the cluster to restore the variables")
            token = int(session.run(self._optimizer.next_token))
        self._local = token
        self._fill_copies(session)  # those that came with the old token may be of before the step
        return token

    def _set_local(self, session: Any, step: int) -> None:
        self._era = int(session.run(self._optimizer.era))
        session.run(self._take_era, {self._number: self._era})
        session.run(self._take_step, {self._number: step})
        self._local = step

    def _rejoin(self, session: Any, step: int) -> int:
        own = self._optimizer.worker_index
        self._given = self._stamp if self._exact else int(session.run(self._optimizer.contributions)[own])
        if not self._has_given(session)[:, own].any():
            return self._begin(session, step) if self._exact else step
        self._give_rest(session)
        self._count(session, self._given + 1)
        return self._wait_for_newer(session, step)

    def _begin(self, session: Any, step: int) -> int:
        session.run(self._optimizer.drain)  # no newer token can be there without this worker's gradient
        self._count(session, self._stamp)
        return step

    def _count(self, session: Any, given: int) -> None:
        self._given = given
        session.run(self._count_own, {self._number: given})

    def _has_given(self, session: Any, options: Any = None) -> Any:
        """Return which pushes of the current step have the gradient of which worker, as bool [pushes, workers]."""
        found = session.run([server.given for server in self._optimizer.servers], options=options)
        return np.concatenate(found).reshape([-1, self._optimizer.num_workers]) > self._stamp

    @property
    def _stamp(self) -> int:
        return self._era + self._local

    def _give_rest(self, session: Any) -> None:
        """Give the current step the gradients that it lacks of this worker."""
        given = self._has_given(session)[:, self._optimizer.worker_index]
        if not given.all():
            self._fill_copies(session)
            self.begin_reading(session)
            session.run(those(self._optimizer.give, ~given), self._optimizer.at_once)

    def _rejoin_as_chief(self, session: Any, step: int, steps: int) -> int:
        session.run(self._optimizer.announce)
        if self._optimizer.num_workers == 1:
            return self.open(session, steps)
        if not self._exact:
            step = self._skip_step(session)
            self._start_finisher(session, steps - step)
            return step
        wait_for(f"the other workers' gradients of step {step}", lambda: self._others_gave(session))
        given = self._has_given(session)[:, 0]
        waiting = session.run(self._optimizer.accumulated).reshape([len(given), -1]).sum(axis=1)
        if (waiting < self._optimizer.num_workers - 1 + given).any():
            return self._skip_step(session)
        if not given.any():
            return self._begin(session, step)
        self._give_rest(session)
        self._count(session, self._stamp + 1)
        session.run(self._optimizer.finish)
        return step + 1

    def _others_gave(self, session: Any) -> Any:
        return self._has_given(session)[:, 1:].all()

    def _skip_step(self, session: Any) -> int:
        empty_accumulators(session, self._optimizer, self._stamp + 1)  # before others can give to the next step
        step = int(session.run(self._skip))
        self._count(session, self._era + step)
        session.run(self._optimizer.announce)
        return step
