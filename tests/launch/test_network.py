"""What a step moves and how long that takes at least, by hand-computed examples."""

from typing import List

import pytest

from launch.network import End, describe, step_seconds, traffic

MB = 1_000_000


def ends(role: str, hosts: List[str]) -> List[End]:
    return [End(f"{role}:{index}", host) for index, host in enumerate(hosts)]


def test_every_worker_moves_the_whole_model_and_every_ps_its_part_times_the_workers() -> None:
    workers, servers = ends("worker", ["a", "b", "c"]), ends("ps", ["x", "y"])
    assert traffic(workers, servers, [30, 10]) == {
        "ps:0": 90, "ps:1": 30, "worker:0": 40, "worker:1": 40, "worker:2": 40,
    }  # fmt: skip


def test_what_stays_on_a_host_does_not_count() -> None:
    workers, servers = ends("worker", ["a", "b"]), ends("ps", ["a", "b"])
    assert traffic(workers, servers, [30, 10]) == {"ps:0": 30, "ps:1": 10, "worker:0": 10, "worker:1": 30}
    assert step_seconds(ends("worker", ["a", "a"]), ends("ps", ["a"]), [MB], 1.0) == 0


@pytest.mark.parametrize(
    ("workers", "servers", "pulled", "seconds"),
    [
        # 4 workers, 4 balanced ps of 10 MB at 1 Gbit/s: 40 MB each way in turn, 0.32 s each
        (["a", "b", "c", "d"], ["w", "x", "y", "z"], [10 * MB] * 4, 0.64),
        # one ps: its card carries all four workers' pulls
        (["a", "b", "c", "d"], ["w"], [40 * MB], 2.56),
        # one fuller ps is what everyone waits for
        (["a", "b"], ["w", "x"], [30 * MB, 10 * MB], 0.96),
        # two workers on one host share its card
        (["a", "a"], ["w", "x"], [10 * MB, 10 * MB], 0.64),
        # colocated with k = n = 4: 2 (n - 1) M / (n B), the ring all-reduce's own bound
        (["a", "b", "c", "d"], ["a", "b", "c", "d"], [10 * MB] * 4, 2 * 3 / 4 * 40 * 8 / 1000),
    ],
)
def test_a_step_takes_pull_and_push_over_the_fullest_card(
    workers: List[str], servers: List[str], pulled: List[int], seconds: float
) -> None:
    assert step_seconds(ends("worker", workers), ends("ps", servers), pulled, 1.0) == pytest.approx(seconds)


def test_the_plan_tells_bytes_per_task_and_seconds_at_the_given_speed() -> None:
    told = describe(ends("worker", ["a"]), ends("ps", ["x"]), [125 * MB], nic_gbps=10.0)
    assert told == {
        "nic_gbps": 10.0,
        "seconds_per_step": pytest.approx(0.2),
        "tasks": [
            {"task": "ps:0", "bytes_in": 125 * MB, "bytes_out": 125 * MB},
            {"task": "worker:0", "bytes_in": 125 * MB, "bytes_out": 125 * MB},
        ],
    }
