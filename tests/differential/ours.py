"""Trains a model with this project: a whole run in this process, every task a thread with a server of its own.

Run as a program it answers requests (``tests.differential.asking``).
"""

import time
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Dict, List, Mapping

import numpy as np

from cluster.job import Job
from cluster.protocol.outcome import Outcome
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from launch.agent.linux.sockets import free_ports
from tests.differential.authors import Author, named
from tests.differential.reference import Values, kept
from tests.differential.verdict import Rounding, Verdict, compare, judge_end
from tests.support.training.threads import ThreadedRun

_GRACE_S = 3.0  # for the other workers, once one has failed
_TRIES = 3  # with other ports, which somebody else may take meanwhile


class Run(ThreadedRun):
    """A run of one model; ``sizes`` are the tasks of each role."""

    def __init__(
        self, author: Author, sizes: Mapping[str, int], settings: Train, args: Mapping[str, Any], folder: Path
    ):
        self.author, self.job = author, job_of(author)
        self.settings, self.args, self.folder = settings, dict(args), folder
        ports = iter(free_ports(sum(sizes.values())))
        cluster = {role: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for role, size in sizes.items()}
        self.tasks = [Task(role, index, cluster) for role in cluster for index in range(len(cluster[role]))]
        self.outcomes: List[Outcome] = []

    def ended(self) -> List[Outcome]:
        """Waits for every worker, or for a failure; how the workers ended."""
        number = sum(not self._serves(task) for task in self.tasks)
        until = float("inf")
        while len(self.outcomes) < number and time.monotonic() < until:
            if until == float("inf") and not all(outcome.succeeded for outcome in list(self.outcomes)):
                until = time.monotonic() + _GRACE_S
            time.sleep(0.01)
        return list(self.outcomes)


def job_of(author: Author) -> Job:
    """The author's functions as a job of the file that they are written in."""
    module = ModuleType(author.name)
    module.__file__ = author.model.__code__.co_filename
    vars(module).update(inputs=author.inputs, model=author.model, optimizer=author.optimizer)
    return Job.from_module(module)


def answer(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Trains what is asked for, and compares it with the reference that is kept at ``path``."""
    for _ in range(_TRIES):
        verdict = _verdict(request)
        if "found it taken" not in verdict.text:
            break
    return verdict._asdict()


def _verdict(request: Mapping[str, Any]) -> Verdict:
    with TemporaryDirectory() as folder:
        sizes = {"ps": request["ps"], "worker": request["workers"]}
        settings = Train.from_dict(known(request["train"]))
        server.rewrites_graphs = lambda lent: bool(request["rewritten"])  # as where there are GPUs
        run = Run(named(request["author"]), sizes, settings, request["args"], Path(folder))
        run.start()
        failed = judge_end(run.ended())
        rounding = Rounding(request["train"]["wire"], run.author.half)
        return failed or compare(kept(request["path"]), saved(Path(folder)), rounding)


def known(train: Mapping[str, Any]) -> Dict[str, Any]:
    """The settings without ``sync`` as long as ``Train`` has no such key."""
    names = {each.name for each in fields(Train)}
    return {name: value for name, value in train.items() if name in names or name != "sync"}


def saved(folder: Path) -> Values:
    """All variables of the last checkpoint."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder)))
    return {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}


if __name__ == "__main__":
    from tests.differential.asking import answer_all

    answer_all(answer)
