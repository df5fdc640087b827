"""Trains a job inside the test's own process: one parameter server and one worker, as real as any."""

import ctypes
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Union

from cluster import farewell, server
from cluster.engine import tf
from cluster.job import Job
from cluster.outcome import Outcome, Reporter
from cluster.session import train
from cluster.task import Task, Train
from tests.cluster.processes import free_ports
from tests.waiting import PATIENCE_S


def train_alone(job: Union[Job, ModuleType], folder: Path, args: Dict[str, Any], **settings: Any) -> Outcome:
    """The outcome of the worker, which is the chief; its folder is ``folder/worker.0``."""
    ports = free_ports(2)
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(("ps", "worker"), ports)}
    ps = Task("ps", 0, cluster)
    serving = server.start(ps)
    threading.Thread(target=farewell.wait_until_done, args=(ps, serving), daemon=True).start()
    home = folder / "worker.0"
    home.mkdir()
    job = job if isinstance(job, Job) else Job.from_module(job)
    ended: List[Outcome] = []

    def work() -> None:
        checkpoints = str(folder / "checkpoint")
        worker = Task("worker", 0, cluster)
        ended.append(train(job, worker, Train.from_dict(settings), args, Reporter(home), checkpoints))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(PATIENCE_S)
    _never_destroyed()
    if not ended:
        raise AssertionError(f"training did not end within {PATIENCE_S:.0f} s")
    return ended[0]


def _never_destroyed() -> None:
    for kept in server._kept:  # a server's destructor fails when the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def saved(outcome: Outcome) -> Dict[str, Any]:
    """All variables of the final checkpoint."""
    reader = tf.train.load_checkpoint(outcome.checkpoint)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
