"""Requests to the chief to save before a planned end.

A request to save goes through these states:

    asked       the order ``Save`` is sent; a chief inside a step reads the order only after the step
    taken up    the chief has begun to save, and its progress reports so
    done        the chief's progress reports that the save is done

The caller waits while a request is pending. The wait is over when the save is done, or when the chief's process has
ended. The wait takes at most ``SAVE_S``, or ``LIVE_S`` if training continues during the save. The wait is also over if
the chief has not begun to save within ``TAKE_S`` plus the time of three steps: a synchronous step may never end when a
worker is gone.
"""

from dataclasses import dataclass
from typing import List, Optional, Tuple

from cluster.protocol.save_request import LIVE, NOW
from launch.agent.protocol.messages import Order, Save
from launch.agent.supervision.task_records import TaskRecord

TAKE_S = 5.0
SAVE_S = 20.0
LIVE_S = 600.0  # where training continues meanwhile


@dataclass(frozen=True)
class Request:
    """A request to one attempt of the chief (``task``) to save; the answer may take ``most_s`` seconds."""

    task: str
    number: int
    attempt: int
    asked_at: float
    most_s: float

    def order(self, manner: str) -> Order:
        """Return the order to the chief's host; ``manner`` is one of ``cluster.protocol.save_request``."""
        return Save(self.task, self.attempt, self.number, manner)


class Saving:
    """The requests to the chief of a run to save a checkpoint, one after the other.

    ``chief`` is None for programs that save by themselves.
    """

    def __init__(self, chief: Optional[TaskRecord]):
        self._chief = chief
        self._number = 0
        self._request: Optional[Request] = None  # before a planned end, while the end waits for the request
        self._last = 0  # the number of the newest such request, also afterwards

    def ask(self, now: float, manner: str = NOW) -> List[Order]:
        """Return the order to save before a planned end, if the chief can save.

        The list is empty where the chief does not train now, or has not reported that it can save.
        """
        request = self._new(now, SAVE_S)
        if request is None:
            return []
        self._request, self._last = request, request.number
        return [request.order(manner)]

    def ask_live(self, now: float) -> Tuple[List[Order], Optional[Request]]:
        """Return the order to save while training continues, and the request; no task's end waits for this request.

        The result is ([], None) if the chief cannot save, or must save before a planned end.
        """
        request = None if self.is_pending(now) else self._new(now, LIVE_S)
        return ([], None) if request is None else ([request.order(LIVE)], request)

    def _new(self, now: float, most_s: float) -> Optional[Request]:
        chief = self._chief
        if chief is None or not chief.process or chief.recalled or chief.progress.get("save_done") is None:
            return None
        self._number += 1
        return Request(chief.plan.name, self._number, chief.attempt, now, most_s)

    def is_pending(self, now: float) -> bool:
        """Return whether a planned end still has to wait for the chief's answer."""
        if self._request is not None and not self.awaits(self._request, now):
            self._request = None
        return self._request is not None

    def is_done(self, request: Request) -> bool:
        """Return whether the chief has carried out a request, as far as it could."""
        return self._chief is not None and (self._chief.progress.get("save_done") or 0) >= request.number

    def awaits(self, request: Request, now: float) -> bool:
        """Return whether the chief's answer to a request is still worth waiting for."""
        chief, waited_s = self._chief, now - request.asked_at
        if chief is None or not chief.process or chief.attempt != request.attempt:
            return False
        if self.is_done(request) or waited_s >= request.most_s:
            return False
        steps_s = 3 * (chief.progress.get("step_time_ms") or 0.0) / 1000
        return (chief.progress.get("save_begun") or 0) >= request.number or waited_s < TAKE_S + steps_s

    @property
    def is_held(self) -> bool:
        """Return whether the chief has saved its newest step in answer to the newest request before a planned end."""
        report = self._chief.progress if self._chief is not None else {}
        is_done = (report.get("save_done") or 0) >= self._last
        return is_done and report.get("checkpoint_step") == report.get("step")

    def skip(self) -> None:
        """Stop waiting for the chief's answer."""
        self._request = None
