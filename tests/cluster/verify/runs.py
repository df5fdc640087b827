"""Runs that are verified, with every task a thread of the test's process."""

import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Optional

from cluster.job import Job
from cluster.protocol.outcome import Outcome
from cluster.spec import load
from cluster.task import Task, Train
from tests.support.training.jobs import verified
from tests.support.training.threads import ThreadedRun
from tests.support.waiting import eventually


class VerifiedRun(ThreadedRun):
    """A run of ``tests.support.training.jobs.verified``; threads have the names of their tasks."""

    def _train(self, task: Task) -> None:
        threading.current_thread().name = task.name
        super()._train(task)

    def ended(self) -> List[Outcome]:
        """Wait for the chief, or for whoever fails first; the others may wait for ever then."""
        workers = sum(not self._serves(task) for task in self.tasks)
        eventually(
            "the run ends",
            lambda: len(self.outcomes) == workers or any(not each.succeeded for each in list(self.outcomes)),
        )
        return list(self.outcomes)


def ended(
    folder: Path, args: Dict[str, Any], ps: int = 2, workers: int = 2, job: Optional[ModuleType] = None, **train: Any
) -> List[Outcome]:
    """How the workers ended that have ended."""
    path = folder / "hosts.yaml"
    hosts = {"ps": ["localhost"] * ps, "worker": ["localhost"] * workers}
    path.write_text(f"job: x\ncluster: {hosts}\n")
    settings = Train.from_dict({"steps": 8, "batch_size": 8, "towers": 1, "verify": True, **train})
    run = VerifiedRun(load(path), "tests.support.training.jobs.verified", settings, args, folder / "checkpoints")
    run.job = Job.from_module(job or verified)
    run.start()
    return run.ended()


def compared(outcomes: List[Outcome]) -> Dict[str, float]:
    """What the chief says that it has compared; every worker must have succeeded."""
    assert [each.cause for each in outcomes] == [None] * len(outcomes)
    (found,) = [each.metrics for each in outcomes if each.metrics]
    return found


def cause(outcomes: List[Outcome]) -> str:
    """Why the run failed."""
    found = [each.cause for each in outcomes if not each.succeeded]
    assert found and found[0], outcomes
    return str(found[0])
