"""Trains a construction with parameter servers, all in this process: a task is a thread.

A server of TensorFlow cannot be stopped. So a run takes the servers of an earlier one of the same size, from which
everything is removed.
"""

import contextlib
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from cluster.protocol.outcome import Outcome, Reporter
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.trainer import train
from cluster.variables.partition import CHOICES, SLICES
from launch.agent.linux.ports import free_ports
from tests.differential.authors import named
from tests.differential.constructions import plain
from tests.differential.constructions.functions import control_flow_of
from tests.differential.constructions.manners import Drawn
from tests.differential.ours import job_of, saved
from tests.differential.verdict import DIFFERENT, REFUSED, Rounding, Verdict, compare, judge_end

_DEVICES = 2  # of a worker, for its towers
_GRACE_S = 5.0  # for the other workers, once one has failed
_start = server.start


class Tasks(NamedTuple):
    """The tasks of a cluster, and their servers by name."""

    all: List[Task]
    servers: Dict[str, Any]

    @property
    def workers(self) -> List[Task]:
        """Those that train."""
        return [task for task in self.all if task.role == "worker"]


_idle: Dict[Tuple[int, int], List[Tasks]] = {}


def verdict_on(drawn: Drawn, patience_s: float) -> Verdict:
    """What comes of a seed in this process, beside plain TensorFlow in it."""
    if drawn.construction.must_be_refused:
        ended = _trained(drawn, patience_s)[0]
        return ended or Verdict(DIFFERENT, "trained to the end; expected to be refused")
    try:
        expected = plain.train(drawn.reference())
    except Exception as error:
        return Verdict(DIFFERENT, f"plain TensorFlow does not train it: {type(error).__name__}: {str(error)[:300]}")
    ended, values = _trained(drawn, patience_s)
    if ended is not None:
        return ended
    uncompared = ["carried"] if drawn.construction.target == "state" else []  # as large as a copy's batch
    for name in uncompared:
        for part in (*expected, values):
            part.pop(name, None)
    return compare(expected, values, Rounding(drawn.way.wire))


def _trained(drawn: Drawn, patience_s: float) -> Tuple[Optional[Verdict], Dict[str, Any]]:
    """The verdict on a run that failed, else the values of its last checkpoint."""
    with TemporaryDirectory() as folder, _rewriting(drawn.way.rewritten), control_flow_of(drawn.construction.inside):
        for last in drawn.args()["legs"]:
            outcomes = _run(drawn, Train.from_dict(drawn.train(last)), folder, patience_s)
            if outcomes is None:
                return Verdict(DIFFERENT, f"hung: no end within {patience_s:.0f} s"), {}
            failed = judge_end(outcomes)
            if failed is not None:
                return failed, {}
        return None, saved(Path(folder))


def _run(drawn: Drawn, settings: Train, folder: str, patience_s: float) -> Optional[List[Outcome]]:
    """How the workers ended; None where they did not in time."""
    size = (drawn.way.ps, drawn.way.workers)
    tasks = _idle[size].pop() if _idle.get(size) else _started(*size)
    ended: List[Outcome] = []

    def work(task: Task) -> None:
        job = job_of(named(drawn.construction.as_json()))
        ended.append(train(job, task, settings, drawn.args(), Reporter(None), folder))

    clients = tasks.workers[:1] if drawn.way.sync == "in-graph" else tasks.workers
    threads = [threading.Thread(target=work, args=[task], daemon=True) for task in clients]
    with _servers_of(tasks):
        for thread in threads:
            thread.start()
        in_time = _wait(threads, ended, patience_s)
        found = list(ended)
        if _cleared(tasks, threads):
            _idle.setdefault(size, []).append(tasks)
    return found if in_time or found else None


def _wait(threads: List[threading.Thread], ended: List[Outcome], patience_s: float) -> bool:
    """Waits for all workers, or for one that fails; returns whether one of both came in time."""
    until = time.monotonic() + patience_s
    has_failed = False
    while any(thread.is_alive() for thread in threads):
        if not has_failed and not all(outcome.succeeded for outcome in list(ended)):
            has_failed, until = True, min(until, time.monotonic() + _GRACE_S)
        if time.monotonic() > until:
            return has_failed
        threads[0].join(0.01) if threads[0].is_alive() else time.sleep(0.01)
    return True


def _started(ps: int, workers: int) -> Tasks:
    ports = iter(free_ports(ps + workers))
    cluster = {
        role: [f"127.0.0.1:{next(ports)}" for _ in range(number)] for role, number in (("ps", ps), ("worker", workers))
    }
    tasks = [Task(role, index, cluster) for role in cluster for index in range(len(cluster[role]))]
    return Tasks(tasks, {task.name: _start(task, _DEVICES) for task in tasks})


@contextlib.contextmanager
def _servers_of(tasks: Tasks) -> Iterator[None]:
    """Gives tasks that start their servers those that there are."""
    server.start = lambda task, devices=1, threads=0: tasks.servers[task.name]
    try:
        yield
    finally:
        server.start = _start


@contextlib.contextmanager
def _rewriting(graphs: bool) -> Iterator[None]:
    """Has TensorFlow rewrite graphs, as it does where there are GPUs, or not."""
    known = server.rewrites_graphs
    server.rewrites_graphs = lambda lent: graphs
    try:
        yield
    finally:
        server.rewrites_graphs = known


def _cleared(tasks: Tasks, threads: List[threading.Thread]) -> bool:
    """Ends sessions and removes what they left; returns whether the servers can be used again."""
    sessions = [each for each in server._kept if isinstance(each, tf.Session)]
    for session in sessions if not any(thread.is_alive() for thread in threads) else []:
        session.close()
    target = tasks.servers[tasks.workers[0].name].target
    for containers in (None, [f"slices-{number}" for number in {*CHOICES, SLICES}]):
        tf.Session.reset(target, containers)
    for thread in threads:
        thread.join(_GRACE_S)
    server._kept[:] = [each for each in server._kept if each not in sessions]
    return not any(thread.is_alive() for thread in threads)


def is_right(verdict: Verdict, drawn: Drawn) -> bool:
    """Whether nothing is wrong in silence."""
    return verdict.kind == REFUSED or (verdict.kind != DIFFERENT and not drawn.construction.must_be_refused)
