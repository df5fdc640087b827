"""Report what the running tasks of this host do: their progress, their signs of life, their use of the host."""

import os
from typing import Callable, List, Mapping

from cluster.protocol.outcome import PROGRESS, read_progress
from launch.agent.endings.exits import UNREADABLE
from launch.agent.gpus.failures import Failures
from launch.agent.linux import processes
from launch.agent.protocol.messages import Advanced, Event, GpuFailed, Measured, Signs
from launch.agent.state.log import say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt
from launch.agent.tasks.health import Seen, Vitals
from launch.agent.tasks.usage import Usage


class Reports:
    """The reports about the attempts that run on this host; ``emit`` receives them as events."""

    def __init__(self, folder: RunFolder, gpus: Mapping[str, List[int]], emit: Callable[[Event], None]):
        self._folder, self._emit = folder, emit
        self._usage, self._vitals, self._gpus = Usage(gpus), Vitals(), gpus
        self._failures = Failures() if any(gpus.values()) else None

    def look(self, now: float, running: Mapping[str, Attempt]) -> None:
        """Report the use of the host, tasks that are unwell, and GPUs that have failed, where a look is due."""
        leaders = {name: attempt.pid for name, attempt in running.items()}
        if leaders and self._usage.due(now):
            used = self._usage.look(now, leaders, processes.table())
            self._emit(Measured({name: {"attempt": running[name].number, **used[name]} for name in used}))
        if self._vitals.due(now):
            seen = {name: Seen(running[name].number, pid, self._folder.task(name)) for name, pid in leaders.items()}
            unwell = self._vitals.look(now, seen)
            if unwell:
                self._emit(Signs(unwell))

        if leaders and self._failures is not None and self._failures.due(now):
            self._report_failures(self._failures.look(now), running)

    def _report_failures(self, failures: Mapping[int, str], running: Mapping[str, Attempt]) -> None:
        """Report each GPU that has failed and that a running task uses."""
        for index, what in failures.items():
            users = [name for name in running if index in self._gpus[name]]
            if users:
                self._emit(GpuFailed(users, what))

    def look_at_progress(self, attempt: Attempt) -> None:
        """Report the progress of a task if it has written a newer one."""
        folder = self._folder.task(attempt.task)
        try:
            written_ns = os.lstat(f"{folder}/{PROGRESS}").st_mtime_ns
        except OSError:  # there is none yet, or the task has closed its folder
            return
        if written_ns == attempt.progress_ns:
            return
        attempt.progress_ns = written_ns
        try:
            progress = read_progress(folder)
        except UNREADABLE as error:
            say_seldom(attempt.task, f"{attempt.task}: ignored an unreadable {PROGRESS}: {error}")
            return
        if progress is not None:
            self._emit(Advanced(attempt.task, attempt.number, dict(vars(progress))))
