"""Trains a job inside the test's own process: one worker and its parameter servers, as real as any."""

import threading
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Tuple, Union

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.protocol.outcome import Outcome, Reporter
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from cluster.training.trainer import train
from launch.agent.linux.sockets import free_ports
from tests.support.training import kept
from tests.support.training.threads import serve
from tests.support.waiting import PATIENCE_S


def train_alone(job: Union[Job, ModuleType], folder: Path, args: Dict[str, Any], **settings: Any) -> Outcome:
    """The outcome of the worker, which is the chief; its folder is ``folder/worker.0``."""
    ports = free_ports(2)
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(("ps", "worker"), ports)}
    ps = Task("ps", 0, cluster)
    serving = server.start(ps)
    threading.Thread(target=serve, args=(ps, serving), daemon=True).start()
    home = folder / "worker.0"
    home.mkdir(exist_ok=True)  # a run that goes on
    job = job if isinstance(job, Job) else Job.from_module(job)
    ended: List[Outcome] = []

    def work() -> None:
        checkpoints = str(folder / "checkpoint")
        worker = Task("worker", 0, cluster)
        ended.append(train(job, worker, Train.from_dict(settings), args, Reporter(home), checkpoints))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    kept.running.append(worker)
    worker.join(PATIENCE_S)
    if not ended:
        raise AssertionError(f"training did not end within {PATIENCE_S:.0f} s")
    return ended[0]


def joined(job: Job, settings: Train, args: Dict[str, Any], ps: int = 2) -> Tuple[Replica, Any]:
    """A worker, in a cluster of this process alone, that is about to take its first step; and its session.

    Its towers, a number, are CPU devices.
    """
    ports, towers = free_ports(ps + 1), int(settings.towers)
    cluster = {"ps": [f"127.0.0.1:{port}" for port in ports[:ps]], "worker": [f"127.0.0.1:{ports[ps]}"]}
    tasks = [Task(role, index, cluster) for role in cluster for index in range(len(cluster[role]))]
    servers = [server.start(each, towers) for each in tasks]
    task = replace(tasks[-1], batch_size=towers * settings.tower_batch_size * settings.accumulate)
    pool = [PoolMember(task, [f"CPU:{index}" for index in range(towers)])]
    replica = Builder(job, task, settings, args, pool).build()
    session = server.connect(task, servers[-1], replica.graph)
    for given in (replica.model.prepare, replica.model.start_input, *replica.first_values, *replica.first_slots):
        session.run(given)
    replica.stepper.close(session)
    replica.stepper.open(session, settings.last_step)
    replica.stepper.begin_reading(session)
    return replica, session


def saved(outcome: Outcome) -> Dict[str, Any]:
    """All variables of the final checkpoint."""
    reader = tf.train.load_checkpoint(outcome.checkpoint)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
