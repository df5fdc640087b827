"""What an agent does with the processes of its host, in the place of the product's own."""

from typing import Any, Callable, Dict, Optional, Tuple

from launch.agent.protocol.messages import Advanced, Dismiss, Exited, Prepare, Prepared, Save, Start, Started, Stop
from tests.simulation.processes import Process
from tests.simulation.training import STEP_S


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
                running.save_asked, running.save_manner = max(running.save_asked, order.number), order.manner
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
