"""``launch metrics``: answer each scrape with the newest run's status, in bounded time."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from typing import Callable, Iterator, NamedTuple, Optional

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.history.newest import status_in
from launch.hosts import rpc
from launch.monitoring.metrics import Family, families
from launch.monitoring.web_server import WebServer
from launch.status.run import RunStatus
from launch.status.values import to_values

FRESH_S = 1.0  # an answer serves every scrape that comes within so long
PATIENCE_S = 5.0  # of a scrape; Prometheus' own is ten seconds
ANSWER_S = 30.0


class Told(NamedTuple):
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

    def ask(self) -> Told:
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
            return Told(None, str(problem))
        self._broken = False
        return Told(status)


class Newest:
    """The last answer of ``ask``, at most ``FRESH_S`` old, waited for at most ``PATIENCE_S``.

    Only one question is open at a time: until it is answered, nobody asks another.
    """

    def __init__(self, ask: Callable[[], Told], clock: Callable[[], float] = time.monotonic):
        self._ask, self._clock = ask, clock
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="status")
        self._lock = threading.Lock()
        self._asked_at = 0.0
        self._answer: Optional[Future[Told]] = None

    def get(self, patience_s: float = PATIENCE_S) -> Told:
        """Return the answer, or the problem that there is none yet."""
        try:
            return self._current().result(patience_s)
        except TimeoutError:
            return Told(None, f"no answer within {patience_s:g} s")

    def _current(self) -> "Future[Told]":
        with self._lock:
            known = self._answer
            if known is None or (known.done() and self._clock() - self._asked_at >= FRESH_S):
                self._asked_at = self._clock()
                known = self._answer = self._pool.submit(self._ask)
            return known

    def close(self) -> None:
        """Stop asking."""
        self._pool.shutdown(wait=False)


class RunCollector(Collector):
    """The collector that Prometheus' client library asks for metrics.

    ``note`` receives a line when the host is lost, and when that host is back.
    """

    def __init__(self, name: str, host: str, get: Callable[[], Told], note: Callable[[str], None]):
        self._name, self._host, self._get, self._note = name, host, get, note
        self._problem: Optional[str] = None

    def collect(self) -> Iterator[Family]:
        """Return every metric as of now."""
        told = self._get()
        if told.problem != self._problem:
            self._problem = told.problem
            self._note(told.problem or f"{self._host}: answers again")
        return families(self._name, self._host, told.problem is None, told.status)


class Exporter(WebServer):
    """Listen for scrapes while entered.

    Raises:
      CannotStart: the address is taken, or none of this machine's.
    """

    def __init__(self, collector: RunCollector, address: str, port: int):
        registry = CollectorRegistry()
        registry.register(collector)
        super().__init__(make_wsgi_app(registry), address, port)
