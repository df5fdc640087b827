"""Having the chief save now: before it is ended on purpose, so that nothing is lost.

    asked       the order ``Save`` is out; a chief that is inside a step cannot see it yet
    taken up    the chief has begun to save; it said so in its progress
    done        its progress says that too

Whoever asks waits while ``pending``. That is over when the save is done, when the chief's process has
gone, when it was not taken up within ``TAKE_S`` and three steps (a synchronous step may never
end when a worker is gone), and in any case after ``SAVE_S``.
"""

from typing import List, Optional

from launch.agent.protocol.messages import Order, Save
from launch.agent.supervision.record import TaskRecord

TAKE_S = 5.0
SAVE_S = 20.0


class Saving:
    """One request after the other to the chief of a run. ``chief`` None: programs that save by themselves."""

    def __init__(self, chief: Optional[TaskRecord]):
        self._chief = chief
        self._number = 0
        self._attempt = 0
        self._asked_at: Optional[float] = None

    def ask(self, now: float) -> List[Order]:
        """The order to save; none where the chief does not train now, or has not told that it can."""
        chief = self._chief
        if chief is None or not chief.process or chief.recalled or chief.progress.get("save_done") is None:
            return []
        self._number += 1
        self._attempt, self._asked_at = chief.attempt, now
        return [Save(chief.plan.name, chief.attempt, self._number)]

    def pending(self, now: float) -> bool:
        """Whether the chief's answer is still worth waiting for."""
        if self._asked_at is not None and not self._awaited(now - self._asked_at):
            self._asked_at = None
        return self._asked_at is not None

    def _awaited(self, waited_s: float) -> bool:
        chief = self._chief
        if chief is None or not chief.process or chief.attempt != self._attempt:
            return False
        told = chief.progress
        if (told.get("save_done") or 0) >= self._number or waited_s >= SAVE_S:
            return False
        steps_s = 3 * (told.get("step_time_ms") or 0.0) / 1000
        return (told.get("save_begun") or 0) >= self._number or waited_s < TAKE_S + steps_s

    def skip(self) -> None:
        """Nobody waits any more."""
        self._asked_at = None
