"""Whole runs inside the test's own process, every task a thread with a server of its own.

Much quicker than processes, as TensorFlow is loaded once. What needs a process (signals,
exit codes, restarts) is tested with ``tests.support.training.processes``.
"""

import contextlib
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List, Optional

from cluster.job import Job
from cluster.model.device_pool import count_devices
from cluster.protocol.outcome import Outcome, Reporter
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.spec import Spec
from cluster.task import Task, Train
from cluster.training.trainer import train
from launch.agent.linux.sockets import free_ports
from launch.plan.local_spec import localised
from tests.support.training import kept
from tests.support.waiting import PATIENCE_S


def serve(task: Task, serving: Any) -> None:
    """Wait as a parameter server for the end of the run, or until its session is closed."""
    with contextlib.suppress(tf.errors.CancelledError):
        server.wait_until_done(task, serving)


class ThreadedRun:
    """A hosts file's run, on this machine; ``spec`` says which tasks, with CPU devices in the place of GPUs.

    ``folder`` gets the checkpoints, ``reports`` a folder ``ROLE.INDEX`` of each task, where it reports every step.
    """

    _reports: Optional[Path] = None

    def __init__(
        self, spec: Spec, job: str, settings: Train, args: Dict[str, Any], folder: Path, reports: Optional[Path] = None
    ):
        self.job, self.settings, self.args, self.folder = Job.from_module(import_module(job)), settings, args, folder
        tasks = localised(spec, free_ports(len(spec.tasks))).tasks
        roles = {task.role for task in tasks}
        cluster = {role: [f"127.0.0.1:{task.port}" for task in tasks if task.role == role] for role in roles}
        self.tasks = [Task(task.role, task.index, cluster) for task in tasks]
        self.outcomes: List[Outcome] = []
        self._reports = reports

    def start(self) -> "ThreadedRun":
        """Starts every task."""
        lives = [self._serve if self._serves(task) else self._train for task in self.tasks]
        self._threads = [threading.Thread(target=life, args=[task]) for life, task in zip(lives, self.tasks)]
        kept.running.extend(thread for thread, task in zip(self._threads, self.tasks) if not self._serves(task))
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        return self

    def finish(self) -> Dict[str, Any]:
        """Waits for the workers; all variables of the chief's last checkpoint."""
        for thread, task in zip(self._threads, self.tasks):
            if not self._serves(task):
                thread.join(PATIENCE_S)
        trained = sum(not self._serves(task) for task in self.tasks)
        causes = [outcome.cause for outcome in self.outcomes]
        assert causes == [None] * trained, causes
        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(self.folder)))
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def _serves(self, task: Task) -> bool:
        in_graph = self.settings.replication == "in-graph"
        return task.role == "ps" or (in_graph and not task.is_chief)

    def _serve(self, task: Task) -> None:
        devices = 1 if task.role == "ps" else count_devices(self.settings)
        serve(task, server.start(task, devices))

    def _train(self, task: Task) -> None:
        folder = str(self.folder)
        self.outcomes.append(train(self.job, task, self.settings, self.args, self._reporter(task), folder))

    def _reporter(self, task: Task) -> Reporter:
        if self._reports is None:
            return Reporter(None)
        folder = self._reports / f"{task.role}.{task.index}"
        folder.mkdir()
        return Reporter(folder, every_s=0.0)
