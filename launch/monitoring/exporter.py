"""``launch metrics``: answer each scrape with the newest run's status, in Prometheus' format."""

from collections import Counter
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from launch.monitoring.newest_state import LeadAnswer
from launch.monitoring.web_server import WebServer
from launch.status.run import RUN_NUMBERS, RUN_STATES, TASK_STATES, EffectiveTime, RunStatus
from launch.status.task import TASK_NUMBERS, Number, TaskStatus

Family = Union[GaugeMetricFamily, CounterMetricFamily]
OF_RUN = ["name"]
OF_TASK = ["name", "task", "role", "host"]
FACTORS = {"ms": 1e-3, "%": 1e-2}  # from the unit of a status to that of its metric


def families(name: str, host: str, answered: bool, status: Optional[RunStatus]) -> Iterator[Family]:
    """Yield every metric; unknown values have no sample.

    Args:
      name: the name of the run in the hosts file.
      host: the chief's host.
      answered: whether the host answered; ``status`` is also None where no run of the name has existed.
    """
    yield _metric(
        "launch_up", "1 while the chief's host answers, else 0.", ["name", "host"], [([name, host], answered)]
    )
    for family in _of_run(name, status or RunStatus()):
        if status is None:
            family.samples.clear()
        yield family


def _of_run(name: str, status: RunStatus) -> Iterator[Family]:
    meaning = "Always 1. The label run is the newest run's full name."
    yield _metric("launch_run_info", meaning, ["name", "run"], [([name, status.run], 1.0)])
    states = [([name, state], status.state == state) for state in RUN_STATES]
    yield _metric("launch_run_state", "1 for the run's state, 0 for the others.", ["name", "state"], states)
    yield from _numbers(RUN_NUMBERS, OF_RUN, [([name], status)])
    meaning = "Newest report of the evaluator. The metric step is its checkpoint's step."
    yield _reported("launch_evaluation", meaning, name, status.evaluation or {})
    meaning = "Metrics of the newest training examples."
    yield _reported("launch_training_metric", meaning, name, status.training_metrics)
    yield from _effective(name, status.effective)
    yield from _tasks(name, status.tasks)


def _metric(
    metric: str, meaning: str, labels: List[str], samples: Iterable[Tuple[List[str], Optional[float]]]
) -> Family:
    """Return a metric with its numbers, each with the values of its labels; numbers that are None are left out."""
    kind = CounterMetricFamily if metric.endswith("_total") else GaugeMetricFamily
    family: Family = kind(metric, meaning, labels=labels)
    for of, number in samples:
        if number is not None:
            family.add_metric(of, number)
    return family


def _effective(name: str, found: Optional[EffectiveTime]) -> Iterator[Family]:
    meaning = "Effective training time as a share of all time, 0 to 1."
    yield _metric("launch_effective_ratio", meaning, OF_RUN, [([name], found.share if found else None)])
    uses = {"kept": found.seconds, **found.lost} if found else {}
    meaning = 'Seconds of the run by use; use="kept" is the effective time.'
    yield _metric("launch_time_seconds", meaning, [*OF_RUN, "use"], [([name, use], uses[use]) for use in uses])


def _reported(metric: str, meaning: str, name: str, values: Mapping[str, Optional[float]]) -> Family:
    return _metric(metric, meaning, ["name", "metric"], [([name, of], values[of]) for of in values])


def _tasks(name: str, tasks: List[TaskStatus]) -> Iterator[Family]:
    labelled = [([name, task.name, task.role, task.host], task) for task in tasks]
    counted = Counter({(task.role, state): 0 for task in tasks for state in TASK_STATES})
    counted.update((task.role, task.state) for task in tasks)
    by_state = [([name, *of], number) for of, number in counted.items()]
    yield _metric("launch_tasks", "Number of tasks by role and state.", ["name", "role", "state"], by_state)
    up = [(labels, task.state in ("starting", "running")) for labels, task in labelled]
    yield _metric("launch_task_up", "1 while a process of the task runs, else 0.", OF_TASK, up)
    yield from _numbers(TASK_NUMBERS, OF_TASK, labelled)


def _numbers(
    numbers: Sequence[Number], labels: List[str], statuses: Sequence[Tuple[List[str], Any]]
) -> Iterator[Family]:
    """Yield the metric of each number that has one."""
    for number in numbers:
        if number.metric:
            factor = FACTORS.get(number.unit, 1.0)
            values = [(of, getattr(status, number.field)) for of, status in statuses]
            samples = [(of, None if value is None else value * factor) for of, value in values]
            yield _metric(number.metric, number.meaning, labels, samples)


class RunCollector(Collector):
    """The collector from which Prometheus' client library takes the metrics.

    ``note`` is called with a line when the chief's host is lost, and when it answers again.
    """

    def __init__(self, name: str, host: str, get: Callable[[], LeadAnswer], note: Callable[[str], None]):
        self._name, self._host, self._get, self._note = name, host, get, note
        self._problem: Optional[str] = None

    def collect(self) -> Iterator[Family]:
        """Return the current value of every metric."""
        answer = self._get()
        if answer.problem != self._problem:
            self._problem = answer.problem
            self._note(answer.problem or f"{self._host}: answers again")
        return families(self._name, self._host, answer.problem is None, answer.status)


class Exporter(WebServer):
    """A server that answers scrapes inside a ``with`` block.

    Raises:
      CannotStart: the address is taken, or not an address of this machine.
    """

    def __init__(self, collector: RunCollector, address: str, port: int):
        registry = CollectorRegistry()
        registry.register(collector)
        super().__init__(make_wsgi_app(registry), address, port)
