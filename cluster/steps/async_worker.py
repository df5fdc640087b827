"""Asynchronous training: a worker applies its gradient as soon as it has computed it.

A worker exchanges bucket after bucket, as in an overlapped synchronous step (``cluster.steps.overlapped_sync``). But no
worker waits for another:

    worker   pushes bucket j; the server updates its variables at once
    worker   fetches the new values into its copies, while it pushes the buckets after bucket j

Old values make a gradient worse. A step computes its gradient with these values:

* Large model: the values that came back during the previous step. They are about as fresh as values fetched afterwards:
  fetching takes as long as pushing.
* Small model: values that the worker fetches when the step begins. Fetching them earlier would save no time.
* After a pause longer than a step, such as for a checkpoint: values that the worker has fetched again.
"""

import contextlib
import math
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.runtime.gradients import clip, scalars_of
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import BaseWorker, HoldGate, StepParts
from cluster.steps.exchange import Push, SendWindow, unpack_arrived
from cluster.steps.server_notes import counter
from cluster.updates.incremental_apply import IncrementalApply
from cluster.variables.placement import overlap_pays


class AsyncWorker(BaseWorker):
    """A worker that takes asynchronous steps in a session.

    The servers apply a gradient even if other workers have changed its variables meanwhile. So no worker ever waits for
    another, and training ends at step ``steps`` to ``steps + workers - 1``. A task that restarts joins again.

    Args:
      counts: the number that a step adds to the global step.
    """

    may_overlap = True  # with the steps before and after
    fetches_within = True  # where steps do not overlap, each fetches the values that it computes with

    def __init__(self, parts: StepParts, gate: HoldGate, counts: Any = 1):
        optimizer, global_step, exchange = parts.optimizer, parts.global_step, parts.exchange
        self.waited_s: Optional[float] = None  # for nobody
        self._global_step, self._loss, self._optimizer = global_step, parts.loss, optimizer
        self._gradients = [grad for grad, _ in parts.grads_and_vars]
        self._exchange, self._copies, self._gate = exchange, exchange.copies, gate
        self._beginnings = parts.beginnings
        self._ended_s, self._took_s = 0.0, math.inf
        self._step = 0  # the newest that is known
        # What a session that was given up lays down late has another number, and is not taken for this one's.
        self._life = 0
        self._number = tf.placeholder(tf.int64, [])
        with tf.device(self._copies.host):
            life = counter("life", [], 0)
            self._begin = tf.assign(life, self._number)
            # tf.maximum makes a new tensor: a queued alias of the variable would change with it.
            self._stamp = tf.maximum(life.read_value(), 1)
        present = [(grad, variable) for grad, variable in parts.grads_and_vars if grad is not None]
        pushes = exchange.pushes(clip(present, parts.clip_norm))
        servers = {bucket.server for bucket in self._copies.buckets}
        pays = IncrementalApply.supports(optimizer) and overlap_pays(self._copies.bytes, len(servers))
        self.overlaps = self.may_overlap and pays
        finished, laid = self._in_turn(pushes) if self.overlaps else (self._at_once(pushes), tf.no_op())
        published = [exchange.publish()] if exchange.publish else []
        self._brought = tf.group(laid, *published)
        with tf.device(global_step.device), tf.control_dependencies([finished]):
            self._next_step = tf.assign_add(global_step, counts, use_locking=True)
            self._counted = gate.with_number(self._next_step)
        self._forget = exchange.forget()

    def _in_turn(self, pushes: Sequence[Push]) -> Tuple[Any, Any]:
        """Make two operations: one ends the step's updates, one queues the next step's values."""
        window, pieces = SendWindow(), IncrementalApply(self._optimizer)
        for push in pushes:
            sent = window.wait(push) if push.bucket else push
            with tf.device(push.device):
                updated = pieces.update(unpack_arrived(sent, self._exchange.wire))
            if push.bucket:
                sent = self._exchange.read_outgoing(push.bucket, [updated])
                window.note_return(push, self._exchange.receive(push.bucket, sent))
        with tf.device(self._global_step.device):
            return pieces.finish(), self._copies.put(window.values, self._stamp)

    def _at_once(self, pushes: Sequence[Push]) -> Any:
        """Make the operation that applies all gradients of a step."""
        pairs = [pair for push in pushes for pair in unpack_arrived(push, self._exchange.wire)]
        with tf.device(self._global_step.device):
            return self._optimizer.apply_gradients(pairs)

    @property
    def needed(self) -> List[Any]:
        """Return the variables, other than TensorFlow's global ones, that need a value before this worker can join."""
        return self._gate.state

    def is_open(self, session: Any) -> bool:
        """Return True: once every variable has a value, any worker may join."""
        return True

    def close(self, session: Any) -> None:
        """Reset the gate, as the chief. Other workers cannot join while a variable has no value."""
        session.run(self._gate.reset)

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """Join as the chief, and return the global step; other workers may have changed the variables already."""
        return self.join(session, steps)

    def join(self, session: Any, steps: int) -> int:
        """Drop values left by an abandoned step, fetch new values for the next step, and return the global step."""
        self._life = max(self._life + 1, time.time_ns())
        self._took_s = math.inf
        session.run(self._begin, {self._number: self._life})
        self._gate.enter(session)
        self._step = int(session.run(self._global_step))
        self._copies.fill(session, self._step, [self._forget])
        return self._step

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Wait at a closed gate, apply one gradient; return the global step, the loss, and the values of ``more``."""
        self._gate.pass_through(session)
        began_s = time.monotonic()
        if self.overlaps and began_s - self._ended_s > self._took_s:
            self._copies.fill(session, self._step)
        self._load(session)
        (step, number), loss, fetched, _ = session.run([self._counted, self._loss, more, self._brought])
        self._gate.note(number)
        self._step = int(step)
        self._ended_s = time.monotonic()
        self._took_s = self._ended_s - began_s
        return self._step, float(loss), fetched

    def _load(self, session: Any) -> None:
        """Give the worker's variables the values of the step that begins, unless that step itself fetches them."""
        stamp = self._copies.load(session, self._step) if self.overlaps else None
        if stamp is not None and stamp != self._life:  # left behind by a session that was given up
            self.refresh(session)

    def refresh(self, session: Any) -> None:
        """Fetch the newest values into the worker's variables immediately."""
        self.renew(session)
        self._copies.load(session, self._step)

    def renew(self, session: Any) -> None:
        """Fetch the newest values, between two steps, for this worker's next step."""
        self._copies.fill(session, self._step)

    def owes(self, session: Any) -> bool:
        """Return whether this worker delays its own current step: True unless the chief holds all workers."""
        return not self._gate.is_closed

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """Stop all other workers at the gate, between two steps, as the chief; see ``BaseWorker.held``."""
        with self._gate.closed(session):
            yield int(session.run(self._global_step))

    def scalars(self) -> Dict[str, Any]:
        """Make tensors that describe a step, by name; call this method before the graph is finalized."""
        return scalars_of(self._optimizer, self._gradients)

    def account(self, session: Any) -> str:
        """Return one line with the number of gradients that all workers together have sent."""
        return f"gradients given by all workers: {session.run(self._global_step)}"
