"""Asynchronous training: a worker applies its gradient as soon as it has one.

A step of it is in loads, as an overlapped synchronous one is (``cluster.steps.overlapped_sync``), but nobody waits:

    worker   pushes load j, which updates the variables at once
    worker   fetches the new values into its copies, while it pushes those behind it

A step computes with what came back while the one before was sent. Of a large model that is about as fresh as what
would be fetched afterwards, since that takes as long as pushing; where more time passes between two steps than a step
takes, as while a checkpoint is written, all is fetched anew. Those of a small model are fetched when a step begins: it
would gain nothing, and lose by what lies between two steps. The older values are, the worse is a gradient.
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
    """How one worker takes steps on its own, in a session.

    Gradients of variables that others have changed meanwhile are applied all the same, so
    no worker ever waits for another, and training ends between ``steps`` and
    ``steps + workers - 1``. A task that starts again simply goes on.
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
        """What ends the updates of a step, and what lays down the values for the next one."""
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
        """What ends the updates of a step."""
        pairs = [pair for load in loads for pair in arrived(load, self._exchange.wire)]
        with tf.device(self._global_step.device):
            return self._optimizer.apply_gradients(pairs)

    @property
    def needed(self) -> List[Any]:
        """Variables beyond the global ones that must have a value before this worker can join."""
        return []

    def is_open(self, session: Any) -> bool:
        """Whether the chief lets workers join: once every variable has a value."""
        return True

    def close(self, session: Any) -> None:
        """Nothing keeps workers out but variables without a value."""

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
        """Whether a step that lasts is this worker's own: it always is, nobody waits for anybody."""
        return True

    def scalars(self) -> Dict[str, Any]:
        """Before the graph is finished: tensors that tell how a step went, by name."""
        return scalars_of(self._optimizer, self._gradients)

    def account(self, session: Any) -> str:
        """What each worker has given, in one line."""
        return f"gradients given by all workers: {session.run(self._global_step)}"
