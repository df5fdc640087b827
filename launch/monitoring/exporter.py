"""``launch metrics``: answer each scrape with the newest run's status, as Prometheus reads it."""

from collections import Counter
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Union

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from launch.monitoring.newest_state import LeadAnswer
from launch.monitoring.web_server import WebServer
from launch.status import run
from launch.status.run import RunStatus
from launch.status.task import TaskStatus

Family = Union[GaugeMetricFamily, CounterMetricFamily]
OF_RUN = ["name"]
OF_TASK = ["name", "task", "role", "host"]


class Value(NamedTuple):
    """A number of the status of a run or of a task.

    Attributes:
      metric: its name; one that ends in ``_total`` is a counter.
      meaning: a description of the number.
      field: the field of the status that has the number; where the field is None, the value is left out.
      factor: the factor that the number is multiplied with.
    """

    metric: str
    meaning: str
    field: str
    factor: float = 1.0


RUN_VALUES = (
    Value("launch_step", "Global step of the run.", "global_step"),
    Value("launch_last_step", "Global step at which the run stops.", "steps"),
    Value("launch_steps_per_second", "Recent global steps per second, over ten seconds.", "steps_per_second"),
    Value("launch_examples_per_second", "Recent examples per second, summed over all workers.", "examples_per_second"),
    Value("launch_loss", "Loss of the chief's newest batch.", "loss"),
    Value("launch_checkpoint_step", "Global step of the newest checkpoint.", "checkpoint_step"),
    Value(
        "launch_waiting_ratio",
        "Share of a step, 0 to 1, that the workers wait for the slowest one.",
        "waiting_share",
    ),
)
TASK_VALUES = (
    Value("launch_task_step", "Newest step that the task reported.", "step"),
    Value("launch_task_step_seconds", "Seconds that one step of the worker takes.", "step_time_ms", 1e-3),
    Value("launch_task_wait_seconds", "Seconds of one step that the worker waits for the others.", "wait_ms", 1e-3),
    Value("launch_task_straggler", "1 while the other workers wait for this one, else 0.", "straggler"),
    Value("launch_task_restarts_total", "Restarts of the task.", "restarts"),
    Value(
        "launch_task_dropped_gradients_total",
        "Gradients of the worker that arrived too late to count.",
        "dropped_gradients",
    ),
    Value(
        "launch_task_received_bytes_per_second",
        "Recent bytes per second that the task receives over TCP.",
        "bytes_in_per_second",
    ),
    Value(
        "launch_task_sent_bytes_per_second",
        "Recent bytes per second that the task sends over TCP.",
        "bytes_out_per_second",
    ),
    Value("launch_task_gpu_busy_ratio", "Recent GPU utilisation of the task, 0 to 1.", "gpu_percent", 1e-2),
    Value("launch_task_gpu_memory_bytes", "Bytes in use on the task's GPUs, summed.", "gpu_memory_bytes"),
)


def families(name: str, host: str, answered: bool, status: Optional[RunStatus]) -> Iterator[Family]:
    """Yield every metric, without samples where nothing is known.

    Args:
      name: the name of the run, as the hosts file has it.
      host: the chief's host.
      answered: whether the host could be asked; ``status`` is None also where no run of the name has been.
    """
    up = GaugeMetricFamily("launch_up", "1 while the chief's host answers, else 0.", labels=["name", "host"])
    up.add_metric([name, host], float(answered))
    yield up
    yield _info(name, status)
    yield _state(name, status)
    for value in RUN_VALUES:
        yield _family(value, OF_RUN, [] if status is None else [(status, [name])])
    yield _metrics(
        "launch_evaluation",
        "Newest report of the evaluator. The metric step is its checkpoint's step.",
        name,
        status.evaluation if status else None,
    )
    meaning = "Metrics of the newest examples that trained."
    yield _metrics("launch_training_metric", meaning, name, status.training_metrics if status else None)
    yield from _effective(name, status)
    yield from _tasks(name, [] if status is None else status.tasks)


def _effective(name: str, status: Optional[RunStatus]) -> Iterator[Family]:
    ratio = GaugeMetricFamily(
        "launch_effective_ratio", "Effective training time as a share of all time, 0 to 1.", labels=OF_RUN
    )
    seconds = GaugeMetricFamily(
        "launch_time_seconds",
        "Seconds of the run by their use. The use kept is the effective time.",
        labels=[*OF_RUN, "use"],
    )
    found = status.effective if status else None
    if found is not None:
        if found.share is not None:
            ratio.add_metric([name], found.share)
        for use, spent_s in (
            ("kept", found.seconds),
            ("start", found.start_s),
            ("standing", found.standing_s),
            ("rolled_back", found.rolled_back_s),
            ("saving", found.saving_s),
        ):
            seconds.add_metric([name, use], spent_s)
    yield ratio
    yield seconds


def _info(name: str, status: Optional[RunStatus]) -> Family:
    info = GaugeMetricFamily(
        "launch_run_info", "Always 1. The label run is the newest run's full name.", labels=["name", "run"]
    )
    if status is not None:
        info.add_metric([name, status.run], 1.0)
    return info


def _state(name: str, status: Optional[RunStatus]) -> Family:
    state = GaugeMetricFamily("launch_run_state", "1 for the run's state, 0 for the others.", labels=["name", "state"])
    if status is not None:
        for each in run.RUN_STATES:
            state.add_metric([name, each], float(status.state == each))
    return state


def _metrics(family_name: str, meaning: str, name: str, values: Optional[Mapping[str, Optional[float]]]) -> Family:
    family = GaugeMetricFamily(family_name, meaning, labels=["name", "metric"])
    for metric, value in (values or {}).items():
        if value is not None:
            family.add_metric([name, metric], value)
    return family


def _tasks(name: str, tasks: List[TaskStatus]) -> Iterator[Family]:
    labelled = [(task, [name, task.name, task.role, task.host]) for task in tasks]
    up = GaugeMetricFamily("launch_task_up", "1 while a process of the task runs, else 0.", labels=OF_TASK)
    for task, labels in labelled:
        up.add_metric(labels, float(task.state in ("starting", "running")))
    yield _by_state(name, tasks)
    yield up
    for value in TASK_VALUES:
        yield _family(value, OF_TASK, labelled)


def _by_state(name: str, tasks: List[TaskStatus]) -> Family:
    counted = Counter({(task.role, state): 0 for task in tasks for state in run.TASK_STATES})
    counted.update((task.role, task.state) for task in tasks)
    family = GaugeMetricFamily("launch_tasks", "Number of tasks by role and state.", labels=["name", "role", "state"])
    for (role, state), number in counted.items():
        family.add_metric([name, role, state], number)
    return family


def _family(value: Value, labels: List[str], found: List[Any]) -> Family:
    counts = value.metric.endswith("_total")
    family: Family = (CounterMetricFamily if counts else GaugeMetricFamily)(value.metric, value.meaning, labels=labels)
    for status, of in found:
        number = getattr(status, value.field)
        if number is not None:
            family.add_metric(of, number * value.factor)
    return family


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
