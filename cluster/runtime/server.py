"""The TensorFlow server of one task, the sessions that reach other servers through it, and the server's end.

A run ends in this order: workers leave, the chief leaves last, then the parameter servers end. ``tf.train.Server.join``
never returns. So a parameter server runs a session of its own, which waits on a queue of the same server. The chief
puts one element into that queue as its last act.
"""

import contextlib
import errno
import os
import socket
import threading
from dataclasses import replace
from typing import Any, List, Sequence

from cluster.errors import TaskError
from cluster.protocol.addresses import LOCAL_NAMES, PROXIES, host_of
from cluster.runtime.devices import available_gpus, ps_device, worker_device
from cluster.runtime.tf_compat import leave_out_xla, tf
from cluster.runtime.waiting import listens, wait_for, wait_for_server
from cluster.task import Task, Train

LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)  # raised by a session once a server has restarted

CLOSE_S = 5.0

_kept: List[Any] = []


def start(task: Task, devices: int = 1, threads: int = 0) -> Any:
    """Start and return this task's server, which lives as long as the process and has ``devices`` CPU devices.

    An operation uses ``threads`` threads; with 0, as many as the machine has processors. The number decides in which
    order TensorFlow sums, and so decides the last bits of a sum.

    The function removes proxies from the environment of this process: TensorFlow's RPCs would go through them, even to
    the same machine, and hang.

    Raises:
      TaskError: the task's port is taken.
    """
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    _refuse_taken_port(task)
    leave_out_xla()
    cluster = tf.train.ClusterSpec(dict(task.cluster))
    server = tf.train.Server(
        cluster, job_name=task.role, task_index=task.index, config=_server_config(devices, threads)
    )
    return keep(server)


def settle_threads(devices: int = 1, threads: int = 0) -> None:
    """Let this process compute with the threads of its later server: the first session of a process decides.

    Call this function before any code that may open a session. The arguments are those of ``start``.
    """
    leave_out_xla()
    config = _server_config(devices, threads)
    config.device_count["GPU"] = 0  # the server takes the memory of GPUs
    keep(tf.Session(graph=tf.Graph(), config=config))


def connect(task: Task, server: Any, graph: Any, lent: Sequence[Task] = ()) -> Any:
    """Return a session on ``graph`` that reaches, through ``server``, the parameter servers and the tasks ``lent``.

    Lent tasks are workers that only run another worker's operations.
    """
    return keep(tf.Session(server.target, graph=graph, config=session_config(task, lent)))


def close(session: Any) -> None:
    """Close a session of which no step runs. After ``CLOSE_S`` seconds, return while TensorFlow still closes it.

    TensorFlow 2.x may take a minute if a server has refused a step of the session.
    """

    def end() -> None:
        with contextlib.suppress(tf.errors.OpError):  # its servers may be gone
            session.close()

    closing = threading.Thread(target=end, name="closing", daemon=True)
    closing.start()
    closing.join(CLOSE_S)


def keep(made: Any) -> Any:
    """Keep ``made``, a server or a session, until the process exits, and return it: its destructor may never return.

    The destructor of a session can block if its peers are gone, and on TensorFlow 2.21 even if it had no peers. Python
    runs the destructor in whichever thread collects garbage.
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
    """Return the number of threads of an operation, for ``start``: 1 in a verified run, else 0.

    With one thread, sums are equal on every host.
    """
    return 1 if settings.verify else 0


def _server_config(devices: int, threads: int) -> Any:
    """Return the options of the server. The server creates the devices, so a session ignores options of devices."""
    config = tf.ConfigProto(
        device_count={"CPU": devices}, allow_soft_placement=True, intra_op_parallelism_threads=threads
    )
    config.gpu_options.allow_growth = True
    # Otherwise an idle thread spins before it sleeps, and takes processor time from other tasks of the host.
    config.experimental.disable_thread_spinning = not available_gpus()
    return config


def session_config(task: Task, lent: Sequence[Task] = ()) -> Any:
    """Return the options of a session that talks only to parameter servers, to itself and to lent workers.

    Without these filters a session waits for every task of the cluster, even for finished workers.
    """
    own = f"/job:{task.role}/task:{task.index}"
    filters = [own] if task.role == "ps" else ["/job:ps", own]
    filters += [f"/job:{other.role}/task:{other.index}" for other in lent]
    config = tf.ConfigProto(device_filters=filters, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = not rewrites_graphs(lent)
    return config


def rewrites_graphs(lent: Sequence[Task]) -> bool:
    """Return whether TensorFlow may rewrite graphs before it runs them.

    On GPUs a rewrite changes images to the layout that is fastest on GPUs. On CPUs a step does not become faster. There
    the rewrites of all graphs, including the transport, take a third of the start's time and half of its memory.
    """
    return bool(lent or available_gpus())


def _refuse_taken_port(task: Task) -> None:
    address = task.cluster[task.role][task.index]
    host, _, port = address.rpartition(":")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", int(port)))  # all interfaces, as for TensorFlow's server
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise TaskError(f"{task.name}: cannot listen at {address}: {error.strerror}") from error
        raise TaskError(
            f"{task.name}: expected port {port} of {host} to be free for {address}, found it taken;"
            f" `ss -ltnp 'sport = :{port}'` shows the process there: end it, or {_other_port(task)}"
        ) from error


def _other_port(task: Task) -> str:
    """Return how the task's run gets another port; ``--local`` suits only a run that is on this machine alone."""
    hosts = {host_of(address) for addresses in task.cluster.values() for address in addresses}
    way = "set another `port` in the hosts file"
    return f"{way}, or start with --local, which takes free ports" if hosts <= set(LOCAL_NAMES) else way


LEAVE_S = 30.0  # for the other workers to finish their current step
_REPORT_S = 5.0


def wait_until_done(task: Task, server: Any) -> None:
    """Wait, in a task that only serves, until the chief reports the run's end.

    TensorFlow blocks in the wait, so Python's signal handlers would not run. The process must leave SIGTERM and SIGINT
    to their default action, which ends the process at once.
    """
    with tf.Graph().as_default():
        done = _queue_of_the_end(task).dequeue()
        connect(task, server, done.graph).run(done)
    _wait_for_chief_to_end(task)


def _wait_for_chief_to_end(task: Task) -> None:
    """Wait until the chief has ended: the chief may still wait for the answer of this server."""
    chief = task.cluster[task.chief_role][0]
    with contextlib.suppress(TimeoutError):  # without the chief, this task has nothing left to do, either
        wait_for(f"the chief at {chief} to end", lambda: not listens(chief), timeout_s=_REPORT_S, poll_s=0.02)


def _queue_of_the_end(task: Task) -> Any:
    with tf.device(worker_device(task.role, task.index)):
        return tf.FIFOQueue(1, tf.int32, shapes=(), shared_name=f"done_{task.role}_{task.index}")


class Shutdown:
    """The queues for the end of a run, in the graph of a worker; ``lent`` are workers that only serve this one."""

    def __init__(self, task: Task, lent: Sequence[Task]):
        self._others = task.num_workers - 1
        with tf.device(ps_device(0)):
            left = tf.FIFOQueue(-1, tf.int32, shapes=(), shared_name="left")
            self._leave = left.enqueue(task.worker_index)
            self._left = left.dequeue()
        servers = [replace(task, role="ps", index=index) for index in range(len(task.cluster["ps"]))]
        self._done = {server.name: _queue_of_the_end(server).enqueue(0) for server in [*servers, *lent]}

    def leave(self, session: Any) -> None:
        """Report that this worker, which is not the chief, takes no more steps."""
        session.run(self._leave, options=_options_within(_REPORT_S))

    def wait_for_others(self, session: Any) -> List[int]:
        """As the chief, wait until the others have left; return the indices of workers that have not left in time."""
        missing = set(range(1, self._others + 1))
        try:
            while missing:
                missing.discard(int(session.run(self._left, options=_options_within(LEAVE_S))))
        except tf.errors.DeadlineExceededError:
            pass  # the caller names them; for the chief the run is over in both cases
        return sorted(missing)

    def end_servers(self, session: Any) -> None:
        """As the chief, report the end of the run to every task that only serves."""
        for name, done in self._done.items():
            try:
                session.run(done, options=_options_within(_REPORT_S))
            except (tf.errors.OpError, RuntimeError) as error:
                print(f"{name}: cannot report the end of the run to it: {error}", flush=True)


def _options_within(seconds: float) -> Any:
    return tf.RunOptions(timeout_in_ms=int(seconds * 1000))
