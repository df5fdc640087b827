"""Fetch the state of the newest run in bounded time: its status, and the newest steps of its tasks.

The chief's host receives one request for the status at a time. All hosts with tasks receive the request for steps at
once.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.typed_json import from_values, to_values
from launch.agent.wire.flight import HostFlights
from launch.agent.wire.verb_requests import FlightRequest
from launch.errors import HostProblem
from launch.fleet import AnyTask, Fleet, names_by_host
from launch.history import status_in
from launch.hosts import rpc
from launch.hosts.channel import Host
from launch.hosts.conversation import noise_if_malformed
from launch.status.run import RunStatus
from launch.timeline.clock_shifts import ClockShift
from launch.timeline.drawing import drawn
from launch.timeline.flights import HostSpans, has_common_steps, time_line

FRESH_S = 1.0  # an answer is reused for this time
PATIENCE_S = 5.0  # for a scrape; Prometheus itself waits ten seconds
ANSWER_S = 30.0


class LeadAnswer(NamedTuple):
    """The answer of the chief's host: a status, or the problem that prevented an answer.

    The status is also None where no run of the name has existed.
    """

    status: Optional[RunStatus]
    problem: Optional[str] = None


class LeadConnection:
    """A connection to the chief's host, which is renewed after a failure."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self.name = fleet.lead
        self._broken = False

    def ask(self) -> LeadAnswer:
        """Ask for the newest run's status now, and return the answer."""
        host = self._fleet.hosts[self.name]
        try:
            if self._broken:
                host.close()
                host.connect()
            self._broken = True
            answer = self._fleet.ask_host(host, "status", self._fleet.reference(self.name), ANSWER_S)
            status = status_in(self.name, answer)
        except HostProblem as problem:
            return LeadAnswer(None, str(problem))
        self._broken = False
        return LeadAnswer(status)


class NewestAnswer:
    """The last answer of ``ask``, at most ``FRESH_S`` old; a caller waits at most ``PATIENCE_S`` for it.

    Only one request is open at a time; the next request is sent after the answer to the previous one.
    """

    def __init__(self, ask: Callable[[], LeadAnswer], clock: Callable[[], float] = time.monotonic):
        self._ask, self._clock = ask, clock
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="status")
        self._lock = threading.Lock()
        self._asked_at = 0.0
        self._answer: Optional[Future[LeadAnswer]] = None

    def get(self, patience_s: float = PATIENCE_S) -> LeadAnswer:
        """Return the answer, or the problem that no answer has arrived yet."""
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


NEWEST_SPANS = 1000  # spans of a task
STEPS_PATIENCE_S = 30.0


def newest_steps(fleet: Fleet, tasks: Sequence[AnyTask], status: RunStatus) -> Tuple[Dict[str, Any], List[HostProblem]]:
    """Return the newest steps of ``tasks`` for the page, and the problems of hosts that sent no steps."""
    names = names_by_host(tasks)
    answers, problems = fleet.each(
        lambda host: _ask_for_steps(fleet, host, names[host.name]),
        list(names),
        interruptible=False,
        timeout_s=STEPS_PATIENCE_S,
    )
    ordered = {host: answers[host] for host in names if host in answers}
    return drawn(time_line(ordered, status, fleet.lead, has_common_steps(fleet.spec))), problems


def _ask_for_steps(fleet: Fleet, host: Host, tasks: Tuple[str, ...]) -> HostSpans:
    """Return a host's spans, and the difference of its clock, which the host read between request and answer."""
    request = FlightRequest(fleet.reference(host.name), tasks, NEWEST_SPANS)
    asked, began = time.time(), time.monotonic()
    values = rpc.ask(host, fleet.code, fleet.spec.workdir, "flight", to_values(request), STEPS_PATIENCE_S)
    half_s = (time.monotonic() - began) / 2
    with noise_if_malformed(host.name, "the newest steps of tasks"):
        found = from_values(HostFlights, values)
    return HostSpans(found.flights, ClockShift(found.time - asked - half_s, half_s))
