"""Which tasks and which of their devices the graph of a client uses."""

from typing import Any, NamedTuple

import pytest

from cluster.errors import TaskError
from cluster.model import device_pool
from cluster.runtime.devices import devices_among, gpus_of, stage_devices
from cluster.runtime.server import session_config
from cluster.task import Task, Train

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


class Device(NamedTuple):
    name: str


@pytest.mark.parametrize(
    ("gpus", "train", "devices"),
    [
        (4, Train(stages=2), ["GPU:0", "GPU:2"]),
        (5, Train(stages=2), ["GPU:0", "GPU:2"]),
        (4, Train(stages=2, towers=1), ["GPU:0"]),
        (0, Train(stages=3, towers=2), ["CPU:0", "CPU:3"]),
        (0, Train(), ["CPU:0"]),
    ],
)
def test_a_tower_takes_as_many_devices_in_a_row_as_it_has_stages(gpus: int, train: Train, devices: Any) -> None:
    assert devices_among(gpus, train) == devices
    assert stage_devices("GPU:2", 2) == ["GPU:2", "GPU:3"]


def test_towers_that_need_more_gpus_than_there_are_are_refused() -> None:
    with pytest.raises(TaskError, match="expected at most 1, the GPUs of this task, at 2 a tower; found 2"):
        devices_among(3, Train(stages=2, towers=2))


def test_a_batch_of_a_worker_has_what_all_its_towers_accumulate_to_a_step() -> None:
    (member,) = device_pool.own_pool(Task("worker", 0, CLUSTER), Train(tower_batch_size=4, towers=2, accumulate=3))
    assert (member.devices, member.task.batch_size) == (["CPU:0", "CPU:1"], 24)


def test_the_gpus_of_a_task_are_counted_among_the_devices_of_all() -> None:
    names = ["worker/replica:0/task:0/device:CPU:0", "worker/replica:0/task:0/device:GPU:0"]
    names += [f"worker/replica:0/task:1/device:{kind}" for kind in ("GPU:0", "GPU:1", "XLA_GPU:0", "CPU:0")]
    devices = [Device(f"/job:{name}") for name in names]
    assert [gpus_of(Task("worker", index, CLUSTER), devices) for index in range(2)] == [1, 2]


def test_between_graphs_a_client_is_itself_and_in_graph_it_is_the_only_worker() -> None:
    task = Task("worker", 0, CLUSTER)
    own = device_pool.PoolMember(Task("worker", 0, CLUSTER, batch_size=8), ["CPU:0"])
    other = device_pool.PoolMember(Task("worker", 1, CLUSTER, batch_size=8), ["CPU:0"])
    assert device_pool.as_client(task, [own]) == own.task
    alone = device_pool.as_client(task, [own, other])
    assert (alone.num_workers, alone.is_chief, alone.batch_size) == (1, True, 16)
    assert alone.cluster == {"ps": ["a:1"], "worker": ["b:1"]}


def test_a_client_s_session_reaches_the_workers_that_lend_their_devices() -> None:
    found = session_config(Task("worker", 0, CLUSTER), [Task("worker", 1, CLUSTER)]).device_filters
    assert list(found) == ["/job:ps", "/job:worker/task:0", "/job:worker/task:1"]
