"""Asynchronous training: a worker applies its gradient as soon as it has one.

A step consists of loads, like an overlapped synchronous step (``cluster.steps.overlapped_sync``), but no worker waits
for another:

    worker   pushes load j, which updates the variables at once
    worker   fetches the new values into its copies, while it pushes the loads behind load j

A step computes with the values that came back while the worker sent the step before. For a large model these values
are about as fresh as values that are fetched afterwards, since fetching takes as long as pushing. More time may pass
between two steps than a step takes, as while a checkpoint is written. Then the worker fetches all values again. A
worker fetches the values of a small model when a step begins. To fetch these values earlier would gain nothing, and
would add the time between two steps to their age. The older the values are, the worse is a gradient.
"""

import math
import time
from typing import Any, Dict, List, Sequence, Tuple

from cluster.runtime.gradients import clipped, scalars_of
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Exchange, Load, arrived
from cluster.steps.send_window import Turns
from cluster.steps.token_sync import counter
from cluster.updates.incremental_apply import Piecewise
from cluster.variables.partition import overlap_pays


class Asynchronous:
    """Take the asynchronous steps of one worker, in a session.

    The servers apply a gradient even if other workers have changed its variables meanwhile. So no worker ever waits for
    another, and training ends between ``steps`` and ``steps + workers - 1``. A task that restarts simply continues.
    """

    def __init__(
        self, optimizer: Any, grads_and_vars: Any, global_step: Any, loss: Any, clip_norm: Any, exchange: Exchange
    ):
        self.dropped = 0  # none ever is
        self.waited_s = None  # for nobody
        self._global_step = global_step
        self._loss = loss
        self._optimizer, self._gradients = optimizer, [grad for grad, _ in grads_and_vars]
        self._exchange, self._copies = exchange, exchange.copies
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
        present = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        loads = exchange.loads(clipped(present, clip_norm))
        servers = {parcel.server for parcel in self._copies.parcels}
        self.overlaps = Piecewise.can(optimizer) and overlap_pays(self._copies.bytes, len(servers))
        finished, laid = self._in_turn(loads) if self.overlaps else (self._at_once(loads), tf.no_op())
        published = [exchange.publish()] if exchange.publish else []
        self._brought = tf.group(laid, *published)
        with tf.device(global_step.device), tf.control_dependencies([finished]):
            self._next_step = tf.assign_add(global_step, 1, use_locking=True)
        self._forget = exchange.forget()

    def _in_turn(self, loads: Sequence[Load]) -> Tuple[Any, Any]:
        """Make two operations: one ends the step's updates, one queues the next step's values."""
        turns, pieces = Turns(), Piecewise(self._optimizer)
        for load in loads:
            sent = turns.wait(load) if load.parcel else load
            with tf.device(load.device):
                updated = pieces.update(arrived(sent, self._exchange.wire))
            if load.parcel:
                sent = self._exchange.outgoing(load.parcel, [updated])
                turns.came_back(load, self._exchange.came(load.parcel, sent))
        with tf.device(self._global_step.device):
            return pieces.finish(), self._copies.put(turns.values, self._stamp)

    def _at_once(self, loads: Sequence[Load]) -> Any:
        """Make the operation that applies all gradients of a step."""
        pairs = [pair for load in loads for pair in arrived(load, self._exchange.wire)]
        with tf.device(self._global_step.device):
            return self._optimizer.apply_gradients(pairs)

    @property
    def needed(self) -> List[Any]:
        """Variables beyond the global ones that must have a value before this worker can join."""
        return []

    def is_open(self, session: Any) -> bool:
        """Return True: the chief keeps no worker out once every variable has a value."""
        return True

    def close(self, session: Any) -> None:
        """Do nothing: only variables without a value keep workers out."""

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """Chief: joins; nothing is needed beyond the variables, which others may have changed already."""
        return self.join(session, steps)

    def join(self, session: Any, steps: int) -> int:
        """Drops what a step that was given up has left, fetches what one begins with; returns the global step."""
        self._life, self._took_s = max(self._life + 1, time.time_ns()), math.inf
        session.run(self._begin, {self._number: self._life})
        self._step = int(session.run(self._global_step))
        self._copies.fill(session, self._step, [self._forget])
        return self._step

    def step(self, session: Any, more: Sequence[Any] = ()) -> Tuple[int, float, List[Any]]:
        """Applies one gradient; returns the global step after it, the loss, and ``more``."""
        began_s = time.monotonic()
        if self.overlaps and began_s - self._ended_s > self._took_s:
            self._copies.fill(session, self._step)
        self._load(session)
        step, loss, fetched, _ = session.run([self._next_step, self._loss, list(more), self._brought])
        self._step = int(step)
        self._ended_s = time.monotonic()
        self._took_s = self._ended_s - began_s
        return self._step, float(loss), fetched

    def _load(self, session: Any) -> None:
        """Gives the worker's variables the values of the step that begins, unless that step itself fetches them."""
        stamp = self._copies.load(session, self._step) if self.overlaps else None
        if stamp is not None and stamp != self._life:  # left behind by a session that was given up
            self.refresh(session)

    def refresh(self, session: Any) -> None:
        """Gives the worker's variables the newest values."""
        self._copies.fill(session, self._step)
        self._copies.load(session, self._step)

    def owes(self, session: Any) -> bool:
        """Return True: a step that lasts is always this worker's own.

        No worker waits for another.
        """
        return True

    def scalars(self) -> Dict[str, Any]:
        """Make, before the graph is finished, tensors that describe a step, by name."""
        return scalars_of(self._optimizer, self._gradients)

    def account(self, session: Any) -> str:
        """Return one line with the number of gradients that all workers gave."""
        return f"gradients given by all workers: {session.run(self._global_step)}"
