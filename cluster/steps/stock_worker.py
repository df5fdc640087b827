"""Synchronous steps of TensorFlow's own ``SyncReplicasOptimizer``, for the setting ``train.sync: stock``.

A worker uses the class as its documentation describes it: with its hook, the chief's queue runner, and the tokens that
the hook preloads. Only the loop is this project's. So a worker reports, saves, traces and rejoins as with any other
setting.

The class has known traps, which ``cluster.steps.token_sync`` avoids:

* **A chief trains alone** until the others join, because of the tokens that are preloaded.
* **One token queue** serves all workers. A quick worker may take two tokens and send two gradients to one step. Then
  another worker's gradient comes late, and is dropped. ``dropped`` counts the gradients that were found to be late.
* **The mean of a sparse gradient's row** is over the workers that sent this row, not over all workers.
* **A worker that joins again** may send its gradient twice. A chief that joins again preloads tokens again.
* **A chief that dies** while its queue runner begins a step may leave the queue runner's operations on the servers.
  These operations then take the next step's gradients, and no worker has a gradient left to send. So ``owes`` is True
  for the chief, and the chief is restarted.
* **Gradients do not show restores**: a gradient computed before a restore of the variables may count after it.
* **The queue runner** blocks in ``take_grad`` at the end, and closing a ``MonitoredSession`` waits two minutes for it.
  Here its threads are daemons that no code joins, so it delays nothing.
"""

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.runtime.gradients import copy_gradient, merge_rows, scalars_of
from cluster.runtime.server_state import copied
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import BaseWorker, Crossing
from cluster.steps.server_notes import counter
from cluster.steps.sync_worker import ASK_MS

TRAPS = """\
train.sync: stock has known traps: the chief trains alone until others join; a fast worker may send two gradients to a
step, and another worker's gradient is then dropped; the mean of a table's row is over the workers that sent the row; a
worker that joins again may send a gradient twice."""


class StockWorker(BaseWorker):
    """A worker that takes steps with TensorFlow's own ``SyncReplicasOptimizer``.

    Build a ``StockWorker`` on the worker's own device.

    Args:
      optimizer: the optimizer by which the chief's queue runner applies the mean gradients, on the servers.
      grads_and_vars: this worker's gradients, each with its variable on a server.
      backup_workers: the number of gradients that a step may omit.

    Attributes:
      applied: the operations that the chief's queue runner runs for each step.
    """

    waited_s: float = 0.0

    def __init__(
        self,
        optimizer: Any,
        grads_and_vars: Sequence[Tuple[Any, Any]],
        global_step: Any,
        loss: Any,
        num_workers: int,
        worker_index: int,
        backup_workers: int = 0,
    ):
        self._optimizer, self._global_step, self._loss = optimizer, global_step, loss
        self._gradients = [grad for grad, _ in grads_and_vars]
        self._is_chief, self._required = worker_index == 0, num_workers - backup_workers
        self._is_alone = num_workers == 1
        self._local_step = 0  # that of the token which this worker has
        self._runner: Optional[Runner] = None
        self._entered = False
        stock = tf.train.SyncReplicasOptimizer(optimizer, self._required, num_workers)
        token = stock.apply_gradients(self._notice_late(grads_and_vars), global_step)
        self.applied = stock.get_chief_queue_runner().enqueue_ops
        self._hook = stock.make_session_run_hook(self._is_chief)
        self._hook.begin()
        self._without_value = tf.size(stock.ready_for_local_init_op)
        self._gathered = _gathered(stock) if self._is_chief else None
        self._watch(token)

    def _notice_late(self, grads_and_vars: Sequence[Tuple[Any, Any]]) -> List[Tuple[Any, Any]]:
        """Look at the servers' step before the gradients are sent."""
        self._number = tf.placeholder(tf.int64, [], "token")
        grads = [_in_order(grad) for grad in self._gradients]
        made = tf.control_dependencies([grad for grad in grads if grad is not None])
        with made, tf.device(self._global_step.device):
            self._late = tf.greater(self._global_step.read_value(), self._number)
        with tf.control_dependencies([self._late]):
            return [(copy_gradient(grad), variable) for grad, (_, variable) in zip(grads, grads_and_vars)]

    def _watch(self, token: Any) -> None:
        """Note when a step has given its gradients, when its token has come, and the global step after that."""
        pushes = token.op.inputs[1].op.control_inputs  # what TensorFlow does before it takes a token has no other name
        self._given = counter("given", [], 0)
        self._begin = tf.assign(self._given, 0)
        with tf.control_dependencies(pushes):
            given_at, given = tf.timestamp(), tf.assign(self._given, 1)
        with tf.control_dependencies([token]):
            self._waited = tf.timestamp() - given_at
        with tf.control_dependencies([token, given]):
            forgotten = tf.assign(self._given, 0)
        with tf.control_dependencies([forgotten]):
            self._token = tf.identity(token)
        with tf.control_dependencies([token]):
            self._step = copied(self._global_step)

    @property
    def needed(self) -> List[Any]:
        """Return []: this worker can join as soon as TensorFlow's global variables have a value."""
        return []

    def is_open(self, session: Any) -> bool:
        """Return whether workers may join: whether all variables that TensorFlow's class checks have a value."""
        return int(session.run(self._without_value)) == 0

    def close(self, session: Any) -> None:
        """Do nothing: other workers cannot join while a variable has no value."""

    def open(self, session: Any, steps: int = 0, is_new: bool = False) -> int:
        """Print the traps once, preload the tokens, start the queue runner, and join, as the chief.

        Return the global step.
        """
        if not self._entered:
            print(TRAPS, flush=True)
        return self._start(session)

    def join(self, session: Any, steps: int) -> int:
        """Join workers that are already training; return the global step.

        Args:
          steps: the global step at which training ends; from there on the worker takes no step.

        Raises:
          tf.errors.AbortedError: variables have lost their values meanwhile; join again, in a new session.
        """
        step = int(session.run(self._global_step))
        return self._start(session) if step < steps else step

    def _start(self, session: Any) -> int:
        self._entered = True
        self._runner = Runner(session) if self._is_chief else None
        session.run(self._begin)
        try:
            self._hook.after_create_session(session, self._runner)
        except RuntimeError as error:
            raise tf.errors.AbortedError(None, None, str(error)) from error
        self._local_step = int(session.run(self._global_step))
        return self._local_step

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Send one gradient and wait for a token; return the new global step, the loss, and the values of ``more``.

        Raises:
          tf.errors.OpError: a server is lost, or the chief's queue runner has failed.
        """
        fetches = [self._token, self._step, self._loss, more, self._late, self._waited]
        try:
            token, step, loss, fetched, late, waited_s = session.run(fetches, {self._number: self._local_step})
        except (tf.errors.OpError, RuntimeError):
            if self._runner is not None and self._runner.error is not None:
                raise self._runner.error from None  # the first cause: it has closed this session
            raise
        self._local_step = int(token)
        self.dropped += int(late)
        self.waited_s += max(0.0, float(waited_s))
        return int(step), float(loss), fetched

    def refresh(self, session: Any) -> None:
        """Fetch nothing: the model reads the servers' own variables."""

    def renew(self, session: Any) -> None:
        """Fetch nothing: the model reads the servers' own variables."""

    def owes(self, session: Any) -> bool:
        """Return whether other workers wait for this worker in the current step.

        Other workers wait until this worker has sent its gradient. They also wait for the chief if the servers have all
        gradients of the step, or no longer have any.

        Raises:
          tf.errors.OpError: the servers do not answer in time.
        """
        options = tf.RunOptions(timeout_in_ms=ASK_MS)
        if not session.run(self._given, options=options):
            return True
        if self._gathered is None or session.run(self._global_step, options=options) > self._local_step:
            return False
        return not 0 < int(session.run(self._gathered, options=options)) < self._required

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """Stop the chief's queue runner; see ``BaseWorker.held``. If the chief is the only worker, stop nothing."""
        if self._runner is None or self._is_alone:
            yield step
            return
        with self._runner.crossing.closed():
            yield int(session.run(self._global_step))

    def scalars(self) -> Dict[str, Any]:
        """Make tensors that describe this worker's gradients in a step; call this before the graph is finalized."""
        return scalars_of(self._optimizer, self._gradients)

    def account(self, session: Any) -> str:
        """Return one line with the number of steps, and the number of gradients in each step."""
        return f"steps: {session.run(self._global_step)}, each with the first {self._required} gradients to arrive"


class Runner(tf.train.Coordinator):  # type: ignore[misc]
    """A coordinator of the chief's queue runner: it can stop the runner, and closes the session if the runner fails.

    If the session stayed open, the chief's own step would wait for a token that nobody sends. In TensorFlow 2.x, a
    request to stop also closes the token queue for good, even on a live server. In a closed session, it cannot do so.
    """

    def __init__(self, session: Any):
        super().__init__()
        self.error: Optional[Exception] = None
        self.crossing = Crossing()
        self._session = session

    def should_stop(self) -> bool:
        """Return whether the queue runner must stop. It asks before each step; while it is held, the call waits."""
        self.crossing.cross()
        return bool(super().should_stop())

    def request_stop(self, ex: Optional[Exception] = None) -> None:
        """Close the session; set ``error`` to ``ex`` if this is the first error."""
        self.error = self.error or ex
        self._session.close()
        super().request_stop()


def _gathered(stock: Any) -> Any:
    """Count the gradients that have arrived for the variable with the fewest."""
    numbers = []
    for accumulator, device in stock._accumulator_list:  # TensorFlow has no public name for it
        with tf.device(device):
            numbers.append(accumulator.num_accumulated())
    return tf.reduce_min(tf.stack(numbers))


def _in_order(grad: Any) -> Any:
    """Bring the rows of a sparse gradient into order, each once: TensorFlow's accumulator counts on that."""
    return merge_rows(grad) if isinstance(grad, tf.IndexedSlices) else grad
