"""What tasks use of their host, put together task by task."""

from typing import Any, Dict, Iterable

import pytest

from launch.agent.gpus.watching import Use
from launch.agent.linux.processes import Process
from launch.agent.linux.traffic import Bytes, Traffic
from launch.agent.tasks.task_reports import USAGE_S, Usage

# pid, parent, group, session: a leader, a child in its group, one in its session, and somebody else
TABLE = [Process(*ids, "S", 0) for ids in ((10, 1, 10, 10), (11, 10, 10, 10), (12, 11, 12, 10), (20, 1, 20, 20))]


class Seen(Traffic):
    """Rates that were made before; remembers whose processes were asked for."""

    def __init__(self, **rates: Bytes):
        super().__init__()
        self.rates = {name.replace("_", ":"): rate for name, rate in rates.items()}
        self.pids: Dict[str, Any] = {}

    def look(self, now: float, pids: Any) -> Dict[str, Bytes]:
        self.pids = dict(pids)
        return self.rates


class Gpus:
    """In place of a driver."""

    def look(self, now: float) -> Dict[int, Use]:
        return {0: Use(80, 1000), 1: Use(None, 500), 2: Use(25, None)}


def used(gpus: Iterable[int] = (), traffic: Any = None) -> Dict[str, Any]:
    usage = Usage({"worker:0": list(gpus)}, traffic or Seen())
    if gpus:
        usage._gpu_use = Gpus()  # type: ignore[assignment]
    return usage.look(0.0, {"worker:0": 10}, TABLE)["worker:0"]


def test_the_network_is_that_of_the_tasks_whole_session() -> None:
    traffic = Seen(worker_0=Bytes(12.4, 3.6))
    assert used(traffic=traffic) == {"bytes_in_per_second": 12, "bytes_out_per_second": 4}
    assert traffic.pids == {"worker:0": [10, 11, 12]}


def test_processes_in_a_session_of_their_own_or_in_a_container_belong_to_the_task_too() -> None:
    traffic = Seen()
    usage = Usage({"worker:0": []}, traffic)
    usage.look(0.0, {"worker:0": 10}, TABLE, {"worker:0": [30, 11, 9]})
    assert traffic.pids == usage.pids == {"worker:0": [10, 11, 12, 9, 30]}


@pytest.mark.parametrize(
    ("gpus", "told"),
    [
        ([0], {"gpu_percent": 80, "gpu_memory_bytes": 1000}),
        ([0, 2], {"gpu_percent": 52.5, "gpu_memory_bytes": 1000}),
        ([0, 1], {"gpu_percent": 80, "gpu_memory_bytes": 1500}),
        ([2], {"gpu_percent": 25}),
        ([7], {}),
    ],
)
def test_of_several_gpus_the_use_is_the_mean_and_the_memory_the_sum(gpus: Any, told: Dict[str, Any]) -> None:
    assert used(gpus) == told


def test_a_host_whose_tasks_have_no_gpus_asks_no_driver() -> None:
    assert Usage({"ps:0": [], "worker:0": []})._gpu_use is None


def test_it_is_looked_now_and_then() -> None:
    usage = Usage({})
    assert [usage.due(now) for now in (5.0, 5.1, 5.0 + USAGE_S, 5.1 + USAGE_S)] == [True, False, True, False]
