"""End a run: workers leave, the chief leaves last, then the parameter servers end.

``tf.train.Server.join`` never returns. So a parameter server waits in a session of its own on a queue that lives on
itself. The chief puts one element into that queue as its last act.
"""

import contextlib
from dataclasses import replace
from typing import Any, List, Sequence

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.server import connect
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import listens, wait_for
from cluster.task import Task

LEAVE_S = 30.0  # for the other workers to finish the step they are in
_REPORT_S = 5.0


def wait_until_done(task: Task, server: Any) -> None:
    """Wait, in a task that only serves, until the chief reports the run's end.

    The wait is inside TensorFlow, where no Python signal handler would run. The process
    must leave SIGTERM and SIGINT to their default action, which ends it at once.
    """
    with tf.Graph().as_default():
        done = _done(task).dequeue()
        connect(task, server, done.graph).run(done)
    _wait_for_chief_to_end(task)


def _wait_for_chief_to_end(task: Task) -> None:
    """Wait until the chief has ended: it may not have the answer yet, and would wait for it."""
    chief = task.cluster[task.chief_role][0]
    with contextlib.suppress(TimeoutError):  # this task has nothing left to do either way
        wait_for(f"the chief at {chief} to end", lambda: not listens(chief), timeout_s=_REPORT_S, poll_s=0.02)


def _done(task: Task) -> Any:
    with tf.device(worker_device(task.role, task.index)):
        return tf.FIFOQueue(1, tf.int32, shapes=(), shared_name=f"done_{task.role}_{task.index}")


class Shutdown:
    """The queues of the end, in the graph of a worker; ``lent`` are workers that only serve it."""

    def __init__(self, task: Task, lent: Sequence[Task] = ()):
        self._others = task.num_workers - 1
        with tf.device(ps_device(0)):
            left = tf.FIFOQueue(-1, tf.int32, shapes=(), shared_name="left")
            self._leave = left.enqueue(task.worker_index)
            self._left = left.dequeue()
        servers = [replace(task, role="ps", index=index) for index in range(len(task.cluster["ps"]))]
        self._done = {server.name: _done(server).enqueue(0) for server in [*servers, *lent]}

    def leave(self, session: Any) -> None:
        """Report, as another worker than the chief, that this worker takes no more steps."""
        session.run(self._leave, options=_within(_REPORT_S))

    def wait_for_others(self, session: Any) -> List[int]:
        """Wait, as the chief, until the others have left; return the indices of those that have not in time."""
        missing = set(range(1, self._others + 1))
        try:
            while missing:
                missing.discard(int(session.run(self._left, options=_within(LEAVE_S))))
        except tf.errors.DeadlineExceededError:
            pass  # named by the caller; the run is over for the chief either way
        return sorted(missing)

    def end_servers(self, session: Any) -> None:
        """Report the end of the run, as the chief, to every task that only serves."""
        for name, done in self._done.items():
            try:
                session.run(done, options=_within(_REPORT_S))
            except (tf.errors.OpError, RuntimeError) as error:
                print(f"{name}: cannot send the end of the run: {error}", flush=True)


def _within(seconds: float) -> Any:
    return tf.RunOptions(timeout_in_ms=int(seconds * 1000))
