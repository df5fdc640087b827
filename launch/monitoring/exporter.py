"""``launch metrics``: answer each scrape with the newest run's status."""

from typing import Callable, Iterator, Optional

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from launch.monitoring.metrics import Family, families
from launch.monitoring.newest_status import LeadAnswer
from launch.monitoring.web_server import WebServer


class RunCollector(Collector):
    """The collector that Prometheus' client library asks for metrics.

    ``note`` receives a line when the host is lost, and when that host is back.
    """

    def __init__(self, name: str, host: str, get: Callable[[], LeadAnswer], note: Callable[[str], None]):
        self._name, self._host, self._get, self._note = name, host, get, note
        self._problem: Optional[str] = None

    def collect(self) -> Iterator[Family]:
        """Return every metric as of now."""
        answer = self._get()
        if answer.problem != self._problem:
            self._problem = answer.problem
            self._note(answer.problem or f"{self._host}: answers again")
        return families(self._name, self._host, answer.problem is None, answer.status)


class Exporter(WebServer):
    """Listen for scrapes while entered.

    Raises:
      CannotStart: the address is taken, or none of this machine's.
    """

    def __init__(self, collector: RunCollector, address: str, port: int):
        registry = CollectorRegistry()
        registry.register(collector)
        super().__init__(make_wsgi_app(registry), address, port)
