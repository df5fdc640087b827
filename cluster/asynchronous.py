"""Asynchronous training: a worker applies its gradient as soon as it has one."""

from typing import Any, Dict, List, Sequence, Tuple

from cluster.engine import tf
from cluster.exchange import Exchange, Load, arrived
from cluster.summaries import scalars_of
from cluster.sync import clipped

_ANY = 0  # in place of a stamp: values may be of any step


class Asynchronous:
    """How one worker takes steps on its own, in a session.

    Gradients of variables that others have changed meanwhile are applied all the same, so
    no worker ever waits for another, and training ends between ``steps`` and
    ``steps + workers - 1``. A task that starts again simply goes on.

    A step fetches the values when it begins. Fetched as soon as the step before has changed them they would be older by
    whatever comes between two steps, and the older they are, the worse is a gradient.
    """

    overlaps = False  # a step fetches everything, then gives everything

    def __init__(
        self, optimizer: Any, grads_and_vars: Any, global_step: Any, loss: Any, clip_norm: Any, exchange: Exchange
    ):
        self.dropped = 0  # none ever is
        self.waited_s = None  # for nobody
        self._global_step = global_step
        self._loss = loss
        self._optimizer, self._gradients = optimizer, [grad for grad, _ in grads_and_vars]
        self._copies = exchange.copies
        present = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        self._make_step(exchange, exchange.loads(clipped(present, clip_norm)))
        self._forget = tf.group(*exchange.wire.reset)

    def _make_step(self, exchange: Exchange, loads: Sequence[Load]) -> None:
        pairs = [pair for load in loads for pair in arrived(load, exchange.wire)]
        with tf.device(self._global_step.device):
            finished = self._optimizer.apply_gradients(pairs)
        self._fetch = tf.group(*[exchange.bring(parcel, _ANY) for parcel in self._copies.parcels])
        with tf.device(self._global_step.device), tf.control_dependencies([finished]):
            self._next_step = tf.assign_add(self._global_step, 1, use_locking=True)

    @property
    def needed(self) -> List[Any]:
        """Variables beyond the global ones that must have a value before this worker can join."""
        return []

    def is_open(self, session: Any) -> bool:
        """Whether the chief lets workers join: once every variable has a value."""
        return True

    def close(self, session: Any) -> None:
        """Nothing keeps workers out but variables without a value."""

    def open(self, session: Any, steps: int = 0) -> int:
        """Chief: joins; nothing is needed beyond the variables."""
        return self.join(session, steps)

    def join(self, session: Any, steps: int) -> int:
        """Drops what a step that was given up has left; returns the global step."""
        session.run([self._copies.drain, self._forget])
        return int(session.run(self._global_step))

    def step(self, session: Any, more: Sequence[Any] = ()) -> Tuple[int, float, List[Any]]:
        """Applies one gradient; returns the global step after it, the loss, and ``more``."""
        step, loss, fetched, _ = session.run([self._next_step, self._loss, list(more), self._fetch])
        return int(step), float(loss), fetched

    def owes(self, session: Any) -> bool:
        """Whether a step that lasts is this worker's own: it always is, nobody waits for anybody."""
        return True

    def scalars(self) -> Dict[str, Any]:
        """Before the graph is finished: tensors that tell how a step went, by name."""
        return scalars_of(self._optimizer, self._gradients)

    def account(self, session: Any) -> str:
        """What each worker has given, in one line."""
        return f"gradients given by all workers: {session.run(self._global_step)}"
