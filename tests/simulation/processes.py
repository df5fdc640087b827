"""The tasks of simulated hosts: processes that start, train together, save, hang, and leave early or late."""

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from launch.agent.protocol.messages import Advanced, Dismiss, Exited, Prepare, Prepared, Save, Start, Started, Stop
from launch.agent.wire.run_plan import RunPlan

STEP_S, SAVED_EVERY, START_S = 0.4, 25, 3.0


@dataclass
class Process:
    """A process of a task. ``kill_at`` is on its agent's clock."""

    task: str
    attempt: int
    host: str
    pid: int
    began: float
    formation: Optional[str] = None
    step: int = 0
    checkpoint: Optional[int] = None
    save_asked: int = 0
    save_done: Optional[int] = None
    is_held: bool = False
    kill_at: Optional[float] = None
    wants_term: bool = False
    ignores_term: bool = False
    is_frozen: bool = False
    dies_after: float = 0.05
    code: Optional[int] = None  # once it has ended
    outcome: Optional[Dict[str, Any]] = None
    is_dying: bool = False
    end: Callable[[int], None] = lambda code: None


@dataclass
class Training:
    """How processes train together: all of a formation must live and reach each other.

    ``step`` is what the servers hold; ``saved`` is the newest checkpoint's.
    """

    plan: RunPlan
    now: Callable[[], float]
    reach: Callable[[str, str], bool]
    awake: Callable[[str], bool]
    processes: List[Process] = field(default_factory=list)
    step: float = 0.0
    saved: int = 0
    is_over: bool = False
    _holders: Tuple[int, ...] = ()

    def look(self, seconds: float) -> None:
        """Let so many seconds of training pass."""
        for group in self._groups().values():
            if self._trains(group):
                self._advance(group, seconds)

    def living(self, task: str) -> List[Process]:
        """Processes of a task that have not ended."""
        return [each for each in self.processes if each.task == task and each.code is None]

    def _groups(self) -> Dict[Optional[str], List[Process]]:
        found: Dict[Optional[str], List[Process]] = {}
        for each in self.processes:
            if each.code is None:
                found.setdefault(each.formation, []).append(each)
        return found

    def _trains(self, group: List[Process]) -> bool:
        if len({each.task for each in group}) < self._size(group[0].formation):
            return False
        if any(each.is_frozen or self.now() - each.began < START_S for each in group):
            return False
        hosts = {each.host for each in group}
        return all(self.awake(host) for host in hosts) and all(
            self.reach(one, other) for one in hosts for other in hosts if one != other
        )

    def _size(self, formation: Optional[str]) -> int:
        if formation is None:
            return sum(not task.spare for task in self.plan.tasks)
        return sum(map(len, json.loads(formation).values()))

    def _advance(self, group: List[Process], seconds: float) -> None:
        chief = next((each for each in group if each.task == self._chief), None)
        holders = tuple(sorted(each.pid for each in group if each.task.startswith("ps") or each is chief))
        if holders != self._holders:  # begins with the checkpoint
            self._holders, self.step = holders, float(self.saved)
        if chief is None or chief.is_held:
            return
        self.step = min(self.step + seconds / STEP_S, float(self.plan.steps or 1 << 30))
        if chief.save_asked > (chief.save_done or 0):
            self._save(chief)
            chief.save_done, chief.is_held = chief.save_asked, True
        elif int(self.step) >= self.saved + SAVED_EVERY:
            self._save(chief)
        chief.save_done = chief.save_done or 0
        for each in group:
            each.step = int(self.step)
        chief.checkpoint = self.saved
        if int(self.step) >= (self.plan.steps or 1 << 30):
            self._save(chief)
            for each in group:
                if not each.task.startswith("ps"):
                    self._succeed(each)

    def _save(self, chief: Process) -> None:
        self.saved = chief.checkpoint = int(self.step)

    def _succeed(self, process: Process) -> None:
        step = int(self.step)
        process.outcome = {"succeeded": True, "step": step, "checkpoint_step": self.saved, "metrics": {}}
        process.code = 0

    @property
    def _chief(self) -> str:
        return next(task.name for task in self.plan.tasks if task.chief)


class HostTasks:
    """One life of an agent with its host's tasks, in the place of ``launch.agent.tasks.host_tasks.HostTasks``.

    Args:
      emit: receives the events.
      begin: makes a process: (task, attempt, formation).
    """

    def __init__(self, emit: Callable[[Any], None], begin: Callable[[str, int, Optional[str]], Process]):
        self._emit, self._begin = emit, begin
        self.running: Dict[str, Process] = {}
        self._told: Dict[str, Tuple[Any, ...]] = {}
        self._tell_at: Dict[str, float] = {}

    def restore_code(self) -> None:
        """Nothing was shipped."""

    def obey(self, order: Any, now: float) -> None:
        """Carry out an order."""
        if isinstance(order, Start):
            process = self.running[order.task] = self._begin(order.task, order.attempt, order.cluster)
            self._emit(Started(order.task, order.attempt, process.pid, [], f"{order.task}.log"))
        elif isinstance(order, Prepare):
            self._emit(Prepared(order.task, order.attempt))
        elif isinstance(order, Save):
            running = self.running.get(order.task)
            if running is not None and running.attempt == order.attempt:
                running.save_asked = max(running.save_asked, order.number)
        elif isinstance(order, Stop):
            self.stop(order.task, 0.5 if order.stack else order.grace_s, now)
        else:
            assert isinstance(order, Dismiss)

    def stop(self, name: str, grace_s: float, now: float) -> None:
        """End a task: TERM at the next poll, KILL after ``grace_s``."""
        process = self.running.get(name)
        if process is not None:
            until = now + grace_s
            process.kill_at = until if process.kill_at is None else min(process.kill_at, until)
            process.wants_term = process.wants_term or grace_s > 0

    def stop_all(self, grace_s: float, now: float) -> None:
        """End every task."""
        for name in list(self.running):
            self.stop(name, grace_s, now)

    def poll(self, now: float) -> None:
        """Signal what was stopped, notice progress and ends."""
        for name, process in list(self.running.items()):
            self._tell(name, process, now)
            if process.code is not None:
                del self.running[name]
                self._emit(_exited(process))
            elif process.kill_at is not None and now >= process.kill_at:
                self._signal(process, -9)
            elif process.wants_term:
                process.wants_term = False
                if not process.ignores_term:
                    self._signal(process, -15)

    def _signal(self, process: Process, number: int) -> None:
        if not process.is_dying:
            process.is_dying = True
            process.end(number)

    def _tell(self, name: str, process: Process, now: float) -> None:
        known = (process.pid, process.step, process.checkpoint, process.save_done)
        if process.step and self._told.get(name) != known and now >= self._tell_at.get(name, 0.0):
            self._told[name], self._tell_at[name] = known, now + 1.0
            self._emit(Advanced(name, process.attempt, _progress(process)))


def _progress(process: Process) -> Dict[str, Any]:
    return {
        "step": process.step, "examples": process.step, "checkpoint_step": process.checkpoint,
        "save_begun": process.save_done, "save_done": process.save_done, "step_time_ms": 1000 * STEP_S,
    }  # fmt: skip


def _exited(process: Process) -> Exited:
    code = process.code
    if process.outcome is not None:
        return Exited(process.task, process.attempt, code, None, process.outcome)
    cause = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return Exited(process.task, process.attempt, code, cause, None, "signal" if (code or 0) < 0 else "exit")
