"""Order the chief to save before a planned end, and record the checkpoints that it cannot write or read.

A request to save goes through these states:

    asked       the order ``Save`` is out; a chief that is inside a step cannot see it yet
    taken up    the chief has begun to save, and its progress reports so
    done        the chief's progress reports that the save is done

The caller waits while ``pending``. The wait is over when the save is done, when the chief's process has
gone, and in any case after ``SAVE_S``. The wait is also over when the chief has not begun to save within
``TAKE_S`` and three steps. A synchronous step may never end when a worker is gone.
"""

from typing import Any, List, Mapping, Optional

from launch.agent.protocol.messages import Order, Save
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.task_records import TaskRecord

TAKE_S = 5.0
SAVE_S = 20.0


class Saving:
    """The requests to the chief of a run to save, one after the other.

    ``chief`` is None for programs that save by themselves.
    """

    def __init__(self, chief: Optional[TaskRecord]):
        self._chief = chief
        self._number = 0
        self._attempt = 0
        self._asked_at: Optional[float] = None

    def ask(self, now: float, hold: bool = False) -> List[Order]:
        """Return the order to save, if the chief can.

        There is no order where the chief does not train now, or has not reported that it can save.

        Args:
          hold: whether the chief takes no step after the save.
        """
        chief = self._chief
        if chief is None or not chief.process or chief.recalled or chief.progress.get("save_done") is None:
            return []
        self._number += 1
        self._attempt, self._asked_at = chief.attempt, now
        return [Save(chief.plan.name, chief.attempt, self._number, hold)]

    def is_pending(self, now: float) -> bool:
        """Return whether the chief's answer is still worth waiting for."""
        if self._asked_at is not None and not self._awaited(now - self._asked_at):
            self._asked_at = None
        return self._asked_at is not None

    def _awaited(self, waited_s: float) -> bool:
        chief = self._chief
        if chief is None or not chief.process or chief.attempt != self._attempt:
            return False
        report = chief.progress
        if (report.get("save_done") or 0) >= self._number or waited_s >= SAVE_S:
            return False
        steps_s = 3 * (report.get("step_time_ms") or 0.0) / 1000
        return (report.get("save_begun") or 0) >= self._number or waited_s < TAKE_S + steps_s

    @property
    def is_held(self) -> bool:
        """Return whether the newest request was followed: the checkpoint has all that the chief knows."""
        report = self._chief.progress if self._chief is not None else {}
        is_done = (report.get("save_done") or 0) >= self._number
        return is_done and report.get("checkpoint_step") == report.get("step")

    def skip(self) -> None:
        """Stop waiting for the chief's answer."""
        self._asked_at = None


class CheckpointProblems:
    """Record ``checkpoint_problem`` of the chief's progress as incidents of the run.

    Each problem is one incident, however often the chief reports it.
    """

    def __init__(self, incidents: Incidents):
        self._incidents = incidents
        self._problem: Optional[str] = None
        self._incident: Optional[Incident] = None

    def record(self, task: str, progress: Mapping[str, Any], now: float) -> None:
        """Record the chief's progress."""
        problem = progress.get("checkpoint_problem")
        if problem == self._problem:
            return
        if problem is not None:
            self._incident = self._incidents.begin("checkpoint", now, task, cause=problem)
        else:
            self._incidents.record_action(
                f"a checkpoint of step {progress.get('checkpoint_step')} is written", now, self._incident
            )
        self._problem = problem
