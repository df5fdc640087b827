"""The TensorFlow server of one task, how sessions reach the others through it, and how it ends.

A run ends in an order: workers leave, the chief leaves last, then the parameter servers end. ``tf.train.Server.join``
never returns. So a parameter server waits in a session of its own on a queue that lives on itself. The chief puts one
element into that queue as its last act.
"""

import contextlib
import errno
import os
import socket
from dataclasses import replace
from typing import Any, List, Sequence

from cluster.errors import TaskError
from cluster.protocol.addresses import PROXIES
from cluster.runtime.devices import available_gpus, ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import listens, wait_for, wait_for_server
from cluster.task import Task, Train

LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)  # what a session raises once a server has started again

_kept: List[Any] = []


def start(task: Task, devices: int = 1, threads: int = 0) -> Any:
    """Start this task's server; it lives as long as the process. Without GPUs it has ``devices`` CPU devices.

    Each operation has as many ``threads`` as the machine has processors, unless their number is given: how TensorFlow
    sums, and so the last bits of a sum, depends on it.

    Proxies are removed from the environment of this process: TensorFlow's RPCs would go
    through them, even to this very machine, and hang.

    Raises:
      TaskError: the task's port is taken.
    """
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    _refuse_taken_port(task)
    cluster = tf.train.ClusterSpec(dict(task.cluster))
    server = tf.train.Server(
        cluster, job_name=task.role, task_index=task.index, config=_server_config(devices, threads)
    )
    return keep(server)


def connect(task: Task, server: Any, graph: Any, lent: Sequence[Task] = ()) -> Any:
    """A session on ``graph`` that reaches the parameter servers, and workers that only serve, through this server."""
    return keep(tf.Session(server.target, graph=graph, config=session_config(task, lent)))


def keep(made: Any) -> Any:
    """Return a server or a session, and let it live until the process exits: its destructor can block for ever.

    A session's has done so where its peers had gone, and on TensorFlow 2.21 also where it had none. Python runs it in
    whichever thread collects garbage.
    """
    _kept.append(made)
    return made


def wait_for_ps(task: Task) -> None:
    """Wait until every parameter server listens.

    Raises:
      TimeoutError: one of the servers does not listen.
    """
    for index, address in enumerate(task.cluster["ps"]):
        wait_for_server(f"ps:{index}", address)


def threads_of(settings: Train) -> int:
    """Return how many threads an operation has: one in a run that is verified, so that sums are alike everywhere."""
    return 1 if settings.verify else 0


def _server_config(devices: int, threads: int) -> Any:
    """Devices are made by the server, so this is where their options count, not in the session."""
    config = tf.ConfigProto(
        device_count={"CPU": devices}, allow_soft_placement=True, intra_op_parallelism_threads=threads
    )
    config.gpu_options.allow_growth = True
    # Else a thread without work looks for some before it sleeps, and takes the processor from others of this host.
    config.experimental.disable_thread_spinning = not available_gpus()
    return config


def session_config(task: Task, lent: Sequence[Task] = ()) -> Any:
    """Return the options of a session that talks only to parameter servers, to itself and to lent workers.

    Without these filters a session waits for every task of the cluster, also for
    workers that have finished.
    """
    own = f"/job:{task.role}/task:{task.index}"
    filters = [own] if task.role == "ps" else ["/job:ps", own]
    filters += [f"/job:{other.role}/task:{other.index}" for other in lent]
    config = tf.ConfigProto(device_filters=filters, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = not rewrites_graphs(lent)
    return config


def rewrites_graphs(lent: Sequence[Task]) -> bool:
    """Return whether TensorFlow is to rewrite graphs before it runs them.

    On GPUs it turns images to the layout that these are quick with. On CPUs a step is no quicker. There the rewriting
    of everything that is run, the transport included, takes a third of a start and half of its memory.
    """
    return bool(lent or available_gpus())


def _refuse_taken_port(task: Task) -> None:
    address = task.cluster[task.role][task.index]
    host, _, port = address.rpartition(":")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", int(port)))  # all interfaces, as TensorFlow's server does
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise TaskError(f"{task.name}: cannot listen at {address}: {error.strerror}") from error
        raise TaskError(
            f"{task.name}: expected port {port} of {host} to be free for {address}, found it taken;"
            f" see who has it with `ss -ltnp 'sport = :{port}'`, end that or choose another port"
        ) from error


LEAVE_S = 30.0  # for the other workers to finish the step they are in
_REPORT_S = 5.0


def wait_until_done(task: Task, server: Any) -> None:
    """Wait, in a task that only serves, until the chief reports the run's end.

    The wait is inside TensorFlow, where no Python signal handler would run. The process
    must leave SIGTERM and SIGINT to their default action, which ends it at once.
    """
    with tf.Graph().as_default():
        done = _queue_of_the_end(task).dequeue()
        connect(task, server, done.graph).run(done)
    _wait_for_chief_to_end(task)


def _wait_for_chief_to_end(task: Task) -> None:
    """Wait until the chief has ended: it may not have the answer yet, and would wait for it."""
    chief = task.cluster[task.chief_role][0]
    with contextlib.suppress(TimeoutError):  # this task has nothing left to do either way
        wait_for(f"the chief at {chief} to end", lambda: not listens(chief), timeout_s=_REPORT_S, poll_s=0.02)


def _queue_of_the_end(task: Task) -> Any:
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
        self._done = {server.name: _queue_of_the_end(server).enqueue(0) for server in [*servers, *lent]}

    def leave(self, session: Any) -> None:
        """Report, as another worker than the chief, that this worker takes no more steps."""
        session.run(self._leave, options=_options_within(_REPORT_S))

    def wait_for_others(self, session: Any) -> List[int]:
        """Wait, as the chief, until the others have left; return the indices of those that have not in time."""
        missing = set(range(1, self._others + 1))
        try:
            while missing:
                missing.discard(int(session.run(self._left, options=_options_within(LEAVE_S))))
        except tf.errors.DeadlineExceededError:
            pass  # named by the caller; the run is over for the chief either way
        return sorted(missing)

    def end_servers(self, session: Any) -> None:
        """Report the end of the run, as the chief, to every task that only serves."""
        for name, done in self._done.items():
            try:
                session.run(done, options=_options_within(_REPORT_S))
            except (tf.errors.OpError, RuntimeError) as error:
                print(f"{name}: cannot send the end of the run: {error}", flush=True)


def _options_within(seconds: float) -> Any:
    return tf.RunOptions(timeout_in_ms=int(seconds * 1000))
