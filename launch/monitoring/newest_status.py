"""The newest run's status, asked of the chief's host in bounded time, one question at a time."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from typing import Callable, NamedTuple, Optional

from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.history.newest import status_in
from launch.hosts import rpc
from launch.status.run import RunStatus
from launch.status.values import to_values

FRESH_S = 1.0  # an answer serves everybody who asks within so long
PATIENCE_S = 5.0  # of a scrape; Prometheus' own is ten seconds
ANSWER_S = 30.0


class LeadAnswer(NamedTuple):
    """The answer of the chief's host: a status, or the problem that kept it from an answer.

    The status is None where no run of the name has been.
    """

    status: Optional[RunStatus]
    problem: Optional[str] = None


class Lead:
    """Ask the chief's host over one connection, which is renewed after a failure."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self.name = fleet.lead
        self._broken = False

    def ask(self) -> LeadAnswer:
        """Ask for the newest run's status now, and return the answer."""
        host, spec = self._fleet.hosts[self.name], self._fleet.spec
        try:
            if self._broken:
                host.close()
                host.connect()
            self._broken = True
            reference = to_values(self._fleet.reference(self.name))
            answer = rpc.ask(host, self._fleet.code, spec.workdir, "status", reference, ANSWER_S)
            status = status_in(self.name, answer)
        except HostProblem as problem:
            return LeadAnswer(None, str(problem))
        self._broken = False
        return LeadAnswer(status)


class NewestAnswer:
    """The last answer of ``ask``, at most ``FRESH_S`` old, waited for at most ``PATIENCE_S``.

    Only one question is open at a time: until it is answered, nobody asks another.
    """

    def __init__(self, ask: Callable[[], LeadAnswer], clock: Callable[[], float] = time.monotonic):
        self._ask, self._clock = ask, clock
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="status")
        self._lock = threading.Lock()
        self._asked_at = 0.0
        self._answer: Optional[Future[LeadAnswer]] = None

    def get(self, patience_s: float = PATIENCE_S) -> LeadAnswer:
        """Return the answer, or the problem that there is none yet."""
        try:
            return self._current().result(patience_s)
        except TimeoutError:
            return LeadAnswer(None, f"no answer within {patience_s:g} s")

    def _current(self) -> "Future[LeadAnswer]":
        with self._lock:
            known = self._answer
            if known is None or (known.done() and self._clock() - self._asked_at >= FRESH_S):
                self._asked_at = self._clock()
                known = self._answer = self._pool.submit(self._ask)
            return known

    def close(self) -> None:
        """Stop asking."""
        self._pool.shutdown(wait=False)
