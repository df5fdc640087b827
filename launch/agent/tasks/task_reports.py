"""Reports about the running tasks of this host: their progress, their heartbeats, and their network and GPU load.

``Vitals`` finds tasks that may be frozen, by their heartbeats and by the kernel's states of their processes. It does
not report a healthy task, except when a starting task reports a new ``doing``.

``Vitals`` does not count seconds in which the whole machine stood still, or in which the kernel did not serve a task
(``launch.agent.linux.procfs``). For a task that computes, its share of a processor counts. For a task
that reads or writes, a tenth of the time counts. For a task that does nothing, all of the time counts. If several tasks
send heartbeats and all of these are late, the machine is slow: then a fifth of the delay counts.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.heartbeat import STEPS, Sign, read_sign
from cluster.protocol.outcome import PROGRESS, read_progress
from launch.agent.endings.exits import UNREADABLE
from launch.agent.gpus.watching import Failures, GpuUse, Use
from launch.agent.linux import processes
from launch.agent.linux.processes import Process
from launch.agent.linux.procfs import Work, pace, work_of
from launch.agent.linux.traffic import Bytes, Traffic
from launch.agent.protocol.messages import Advanced, Event, GpuFailed, Measured, Signs
from launch.agent.state.log import say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt
from launch.agent.tasks.idleness import Idleness, Observed, look_every_s, pids_of
from launch.agent.tasks.saved_checkpoints import SavedCheckpoints

USAGE_S = 3.0
SAVED_S = 0.25  # to wait for what a program that has ended saved last


class Usage:
    """A measurement of the tasks' network and GPU load, every ``every_s`` seconds.

    Args:
      gpus: {task: the indices of its GPUs}
    """

    def __init__(self, gpus: Mapping[str, Sequence[int]], traffic: Optional[Traffic] = None, every_s: float = USAGE_S):
        self._gpus, self.traffic, self._every_s = gpus, traffic or Traffic(), every_s
        self._gpu_use = GpuUse() if any(gpus.values()) else None
        self._look_at = 0.0
        self.pids: Dict[str, List[int]] = {}  # of each task at the last look, the leader first

    def due(self, now: float) -> bool:
        """Return whether to call ``look`` now. After True, the result is False for ``every_s``."""
        if now < self._look_at:
            return False
        self._look_at = now + self._every_s
        return True

    def look(
        self,
        now: float,
        leaders: Mapping[str, int],
        table: Sequence[Process],
        more: Optional[Mapping[str, Sequence[int]]] = None,
    ) -> Dict[str, Dict[str, Any]]:
        """Return {task: load}, with the field names of ``status --json`` and without unknown values.

        Args:
          leaders: {task: pid of the leader, whose session and group belong to the task}
          table: the processes of this host.
          more: {task: pids of its further processes}, in other sessions or in a container.
        """
        sessions = {process.pid: process.session for process in table}
        marks = {task: {leader, sessions.get(leader, leader)} for task, leader in leaders.items()}
        own = {task: [p.pid for p in table if mark & {p.group, p.session}] for task, mark in marks.items()}
        self.pids = {task: pids_of(leaders[task], own[task], (more or {}).get(task, ())) for task in leaders}
        rates, gpus = self.traffic.look(now, self.pids), self._gpu_use.look(now) if self._gpu_use else {}
        uses = {task: [gpus[index] for index in self._gpus[task] if index in gpus] for task in leaders}
        return {task: {**_network(rates.get(task)), **_of_gpus(uses[task])} for task in leaders}


def _network(rate: Optional[Bytes]) -> Dict[str, Any]:
    if rate is None:
        return {}
    return {"bytes_in_per_second": round(rate.into), "bytes_out_per_second": round(rate.out)}


def _of_gpus(uses: Sequence[Use]) -> Dict[str, Any]:
    """Return the mean of the GPUs' use and the sum of their memory."""
    percents = [use.percent for use in uses if use.percent is not None]
    memories = [use.memory_bytes for use in uses if use.memory_bytes is not None]
    mean = {"gpu_percent": round(sum(percents) / len(percents), 1)} if percents else {}
    return {**mean, **({"gpu_memory_bytes": sum(memories)} if memories else {})}


class Reports:
    """The reports about the attempts that run on this host; ``emit`` receives them as events.

    Args:
      gpus: {task: the indices of its GPUs}
      quiet_s: the seconds without work after which a task is reported as quiet; None for no measurement.
      mask: hides secrets in a text.
      saved: the search for checkpoints of programs.
    """

    def __init__(
        self,
        folder: RunFolder,
        gpus: Mapping[str, List[int]],
        emit: Callable[[Event], None],
        quiet_s: Optional[float] = None,
        mask: Callable[[str], str] = str,
        saved: Optional[SavedCheckpoints] = None,
    ):
        self._folder, self._emit, self._saved = folder, emit, saved or SavedCheckpoints({})
        every_s = look_every_s(USAGE_S, quiet_s)
        self._usage, self._vitals, self._gpus = Usage(gpus, every_s=every_s), Vitals(), gpus
        self._idleness = None if quiet_s is None else Idleness(quiet_s, every_s, mask)
        self._failures = Failures() if any(gpus.values()) else None

    def look(self, now: float, running: Mapping[str, Attempt]) -> None:
        """Report the load, tasks that may be frozen, and GPUs that have failed, each as often as it is due."""
        leaders = {name: attempt.pid for name, attempt in running.items()}
        if leaders and self._usage.due(now):
            self._emit(Measured(self._measure(now, leaders, running)))
        if self._vitals.due(now):
            seen = {name: Seen(running[name].number, pid, self._folder.task(name)) for name, pid in leaders.items()}
            unwell = self._vitals.look(now, seen)
            if unwell:
                self._emit(Signs(unwell))

        if leaders and self._failures is not None and self._failures.due(now):
            self._report_failures(self._failures.look(now), running)

    def look_at_end(self, attempt: Attempt) -> None:
        """Report the checkpoints of a program that has ended. It may have saved its only checkpoint just before."""
        if attempt.task in self._saved:
            saved = self._saved.newest(SAVED_S).get(attempt.task, {})
            self._emit(Measured({attempt.task: {"attempt": attempt.number, "saved": saved, "ended": True}}))

    def _measure(
        self, now: float, leaders: Mapping[str, int], running: Mapping[str, Attempt]
    ) -> Dict[str, Dict[str, Any]]:
        """Return what is measured of each task, by fields of its status.

        ``quiet`` is there where the task does nothing, and ``saved`` where a program saves checkpoints.
        """
        more = {name: [attempt.process.pid, *attempt.kin.pids] for name, attempt in running.items()}
        used = self._usage.look(now, leaders, processes.table(), more)
        measured = {name: {"attempt": running[name].number, **used[name]} for name in used}
        for name, lists in self._saved.newest().items():
            if name in measured:
                measured[name]["saved"] = lists
        if self._idleness is not None:
            observed = {name: self._observe(running[name], used[name].get("gpu_percent", 0.0)) for name in used}
            for name, quiet in self._idleness.look(now, observed).items():
                measured[name]["quiet"] = quiet
        return measured

    def _observe(self, attempt: Attempt, gpu_percent: float) -> Observed:
        name, usage = attempt.task, self._usage
        log = self._folder.log(name, attempt.number)
        return Observed(
            attempt.number, usage.pids[name], self._folder.task(name), log, usage.traffic.total(name), gpu_percent
        )

    def _report_failures(self, failures: Mapping[int, str], running: Mapping[str, Attempt]) -> None:
        """Report each GPU that has failed and that a running task uses."""
        for index, what in failures.items():
            users = [name for name in running if index in self._gpus[name]]
            if users:
                self._emit(GpuFailed(users, what))

    def look_at_progress(self, attempt: Attempt) -> None:
        """Report the progress of a task if the task has written a newer progress file."""
        folder = self._folder.task(attempt.task)
        try:
            written_ns = os.lstat(f"{folder}/{PROGRESS}").st_mtime_ns
        except OSError:  # no progress exists yet, or the task has closed its folder
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


LOOK_S = 1.0
SLOW_SHARE = 0.2
QUIET_S = 3.0  # a sign of life this late, or a phase this long, is reported
_SHOWN = ("phase", "phase_s", "slowest_s", "usual_s", "owes", "doing")
LASTING = (*STEPS, "saving")  # all other phases may take any time


class Seen(NamedTuple):
    """A running task: its attempt, the pid of its leader, and its folder."""

    attempt: int
    pid: int
    folder: Path


@dataclass
class Watched:
    """The observed state of one attempt of a task. Seconds are counted between calls of ``Vitals.look``."""

    attempt: int
    beat: Optional[int] = None  # the beat of its newest sign
    work: Optional[Work] = None  # its work up to the last look
    phase: Optional[str] = None
    phase_s: float = 0.0  # as the task reports
    counted_s: float = 0.0  # the part of the phase that counts
    doing: str = ""  # the part of its start that was reported last
    silent_s: float = 0.0
    stopped_s: float = 0.0
    is_reported: bool = False  # whether the lead has it as unwell


class Vitals:
    """A check of the heartbeats of this host's tasks, every ``LOOK_S``.

    Args:
      work_of: returns the work that the process with a given pid has done so far.
    """

    def __init__(self, work_of: Callable[[int], Optional[Work]] = work_of) -> None:
        self._work_of = work_of
        self._watched: Dict[str, Watched] = {}
        self._looked_at = 0.0
        self._slow = False  # whether all signs were late at the last look

    def due(self, now: float) -> bool:
        """Return whether to call ``look`` now."""
        return now - self._looked_at >= LOOK_S

    def look(self, now: float, tasks: Mapping[str, Seen]) -> Dict[str, Dict[str, Any]]:
        """Return {task: values} for tasks that may be frozen, have just recovered, or are starting.

        The values are {"attempt", "state", "stopped_s", "silent_s", …}. ``state`` is the kernel's state of the task's
        leader, and ``silent_s`` the delay of its heartbeat. ``counted_s`` is the time in the task's phase that counts.
        The other keys come from the heartbeat, if there is one.
        """
        counted_s, self._looked_at = min(now - self._looked_at, 2 * LOOK_S), now
        self._watched = {name: self._watch(name, task.attempt) for name, task in tasks.items()}
        looked = {name: self._look(self._watched[name], task, counted_s) for name, task in tasks.items()}
        late = [each.silent_s >= QUIET_S for each in self._watched.values() if each.beat is not None]
        self._slow = len(late) > 1 and all(late)
        return {name: signs for name, signs in looked.items() if signs}

    def _watch(self, name: str, attempt: int) -> Watched:
        known = self._watched.get(name)
        return known if known is not None and known.attempt == attempt else Watched(attempt)

    def _look(self, watched: Watched, task: Seen, counted_s: float) -> Dict[str, Any]:
        process, sign = processes.inspect(task.pid), read_sign(task.folder)
        state = "Z" if process is None else process.state
        watched.stopped_s = watched.stopped_s + counted_s if state == "T" else 0.0
        part = self._pace(watched, task.pid, counted_s)
        if sign is not None and sign.beat == watched.beat:
            watched.silent_s += counted_s * part * (SLOW_SHARE if self._slow else 1.0)
        elif sign is not None:
            watched.silent_s, watched.beat = 0.0, sign.beat
            _count(watched, sign, part)
        lasts = sign is not None and sign.phase in LASTING and sign.phase_s >= QUIET_S
        unwell = state in "Tt" or watched.silent_s >= QUIET_S or lasts
        doing = "" if sign is None else sign.doing
        is_news = unwell or watched.is_reported or doing != watched.doing
        watched.is_reported, watched.doing = unwell, doing
        if not is_news:
            return {}
        shown = {} if sign is None else {key: getattr(sign, key) for key in _SHOWN}
        return {
            "attempt": watched.attempt, "state": state, "stopped_s": round(watched.stopped_s, 3),
            "silent_s": round(watched.silent_s, 3), "counted_s": round(watched.counted_s, 3), **shown,
        }  # fmt: skip

    def _pace(self, watched: Watched, pid: int, seconds: float) -> float:
        """Return the part of these seconds that counts."""
        before, watched.work = watched.work, self._work_of(pid)
        return 1.0 if before is None or watched.work is None else pace(before, watched.work, seconds)


def _count(watched: Watched, sign: Sign, part: float) -> None:
    """Add the counted part of the seconds that a task reports for its phase since the last look."""
    if sign.phase != watched.phase or sign.phase_s < watched.phase_s:
        watched.counted_s = sign.phase_s
    else:
        watched.counted_s += part * (sign.phase_s - watched.phase_s)
    watched.phase, watched.phase_s = sign.phase, sign.phase_s
