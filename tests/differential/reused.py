"""Whole runs in this process, every task a thread, on servers that the next run of the same size uses again.

A server of TensorFlow cannot be stopped. So each run begins with everything removed that the one before it left there.
"""

import contextlib
import threading
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from cluster.protocol.outcome import Outcome, Reporter
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.trainer import train
from cluster.variables.placement import CHOICES, SLICES
from launch.agent.linux.sockets import free_ports
from tests.differential.authors import named
from tests.differential.ours import job_of
from tests.support.training import kept

_DEVICES = 2  # of a worker, for its towers
_GRACE_S = 5.0  # for the other workers, once one has failed
_start, _rewrites = server.start, server.rewrites_graphs


class Tasks(NamedTuple):
    """The tasks of a cluster, and their servers by name."""

    all: List[Task]
    servers: Dict[str, Any]

    @property
    def workers(self) -> List[Task]:
        """Those that train."""
        return [task for task in self.all if task.role == "worker"]


_idle: Dict[Tuple[int, int], List[Tasks]] = {}


class Run(NamedTuple):
    """A run of the model ``name``; ``rewritten``: TensorFlow rewrites its graphs, as it does where there are GPUs."""

    name: str
    train: Mapping[str, Any]
    args: Mapping[str, Any]
    ps: int
    workers: int
    rewritten: bool = False

    def outcomes(self, folder: str, patience_s: float) -> Optional[List[Outcome]]:
        """How the workers ended, or those until one failed; None where none failed, and not all ended in time."""
        tasks = _idle[self._size].pop() if _idle.get(self._size) else _started(*self._size)
        ended: List[Outcome] = []
        in_graph = self.train.get("replication") == "in-graph"
        clients = tasks.workers[:1] if in_graph else tasks.workers
        threads = [threading.Thread(target=self._work, args=[task, folder, ended], daemon=True) for task in clients]
        with self._in_place_of_starting(tasks):
            for thread in threads:
                thread.start()
            known = _wait(threads, ended, patience_s)
            if _cleared(tasks, threads):
                _idle.setdefault(self._size, []).append(tasks)
        return known

    @property
    def _size(self) -> Tuple[int, int]:
        return self.ps, self.workers

    def _work(self, task: Task, folder: str, ended: List[Outcome]) -> None:
        job, settings = job_of(named(self.name)), Train.from_dict(self.train)  # of its own, as in a process of its own
        ended.append(train(job, task, settings, self.args, Reporter(None), folder))

    @contextlib.contextmanager
    def _in_place_of_starting(self, tasks: Tasks) -> Iterator[None]:
        server.start = lambda task, devices=1, threads=0: tasks.servers[task.name]
        server.rewrites_graphs = lambda lent: self.rewritten
        try:
            yield
        finally:
            server.start, server.rewrites_graphs = _start, _rewrites


def _wait(threads: List[threading.Thread], ended: List[Outcome], patience_s: float) -> Optional[List[Outcome]]:
    """Waits for all workers, and after one that failed a little for the others."""
    until = time.monotonic() + patience_s
    while any(thread.is_alive() for thread in threads):
        found = list(ended)
        if not all(outcome.succeeded for outcome in found):
            _join(threads, _GRACE_S)
            return found
        if time.monotonic() > until:
            return None
        time.sleep(0.005)
    return list(ended)


def _join(threads: List[threading.Thread], within_s: float) -> None:
    until = time.monotonic() + within_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _started(ps: int, workers: int) -> Tasks:
    ports = iter(free_ports(ps + workers))
    sizes = {"ps": ps, "worker": workers}
    cluster = {role: [f"127.0.0.1:{next(ports)}" for _ in range(number)] for role, number in sizes.items()}
    tasks = [Task(role, index, cluster) for role in cluster for index in range(len(cluster[role]))]
    return Tasks(tasks, {task.name: _start(task, _DEVICES) for task in tasks})


def _cleared(tasks: Tasks, threads: List[threading.Thread]) -> bool:
    """Ends sessions and removes what they left; returns whether the servers can be used again."""
    sessions = [each for each in server._kept if isinstance(each, tf.Session)]
    target = tasks.servers[tasks.workers[0].name].target
    if any(thread.is_alive() for thread in threads):
        tf.Session.reset(target)  # so that what waits for servers fails
        _join(threads, _GRACE_S)
    if any(thread.is_alive() for thread in threads):
        return False
    kept.close(sessions)
    for containers in (None, [f"slices-{number}" for number in {*CHOICES, SLICES}]):
        tf.Session.reset(target, containers)
    kept.forget(sessions)
    return True
