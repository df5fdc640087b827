"""What a step moves and how long that takes at least, by hand-computed examples."""

from typing import List

import pytest

from cluster.protocol.typed_json import to_values
from launch.plan.network_model import NetworkEnd, bound, describe, seconds, share_of_a_ps, traffic
from launch.plan.outlook import Bound

MB = 1_000_000


def ends(role: str, hosts: List[str]) -> List[NetworkEnd]:
    return [NetworkEnd(f"{role}:{index}", host) for index, host in enumerate(hosts)]


def test_every_worker_moves_the_whole_model_and_every_ps_its_part_times_the_workers() -> None:
    workers, servers = ends("worker", ["a", "b", "c"]), ends("ps", ["x", "y"])
    assert traffic(workers, servers, [30, 10]) == {
        "ps:0": 90, "ps:1": 30, "worker:0": 40, "worker:1": 40, "worker:2": 40,
    }  # fmt: skip


def test_what_stays_on_a_host_does_not_count() -> None:
    workers, servers = ends("worker", ["a", "b"]), ends("ps", ["a", "b"])
    assert traffic(workers, servers, [30, 10]) == {"ps:0": 30, "ps:1": 10, "worker:0": 10, "worker:1": 30}


def test_where_nothing_leaves_the_host_a_step_waits_for_nothing() -> None:
    workers, servers = ends("worker", ["a", "a"]), ends("ps", ["a"])
    assert bound(workers, servers, traffic(workers, servers, [MB]), overlapped=True) is None
    told = describe(workers, servers, [MB], {"ps": 1, "pulled": MB}, nic_gbps=1.0, overlapped=True)
    assert (told.bound, told.seconds_per_step) == (None, 0.0)


@pytest.mark.parametrize(
    ("workers", "servers", "pulled", "one_by_one_s", "overlapped_s"),
    [
        # 4 workers, 4 balanced ps of 10 MB at 1 Gbit/s: 40 MB each way, 0.32 s each
        (["a", "b", "c", "d"], ["w", "x", "y", "z"], [10 * MB] * 4, 0.64, 0.32),
        # one ps: its card carries all four workers' pulls
        (["a", "b", "c", "d"], ["w"], [40 * MB], 2.56, 1.28),
        # one fuller ps is what everyone waits for
        (["a", "b"], ["w", "x"], [30 * MB, 10 * MB], 0.96, 0.48),
        # two workers on one host share its card
        (["a", "a"], ["w", "x"], [10 * MB, 10 * MB], 0.64, 0.32),
        # colocated with k = n = 4: 2 (n - 1) M / (n B), the ring all-reduce's own bound, and no less if they
        # overlap, since every card sends and receives in both
        (["a", "b", "c", "d"], ["a", "b", "c", "d"], [10 * MB] * 4, 0.48, 0.48),
    ],
)
def test_a_step_takes_pull_and_push_over_the_fullest_card(
    workers: List[str], servers: List[str], pulled: List[int], one_by_one_s: float, overlapped_s: float
) -> None:
    fewest = {"ps": 1, "pulled": sum(pulled)}
    for overlapped, step_s in ((False, one_by_one_s), (True, overlapped_s)):
        told = describe(ends("worker", workers), ends("ps", servers), pulled, fewest, 1.0, overlapped)
        assert told.seconds_per_step == pytest.approx(step_s)


def test_what_a_step_waits_for_is_a_card_with_its_tasks_and_the_direction_of_the_pull() -> None:
    two, one = ends("worker", ["a", "a", "b"]), ends("ps", ["x"])
    assert bound(two, one, traffic(two, one, [MB]), False) == Bound("x", ["ps:0"], "out", 3 * MB)
    many = ends("ps", ["v", "w", "x", "y"])
    assert bound(two, many, traffic(two, many, [MB] * 4), False) == Bound("a", ["worker:0", "worker:1"], "in", 8 * MB)


def test_what_overlaps_waits_for_all_that_a_card_carries() -> None:
    workers, servers = ends("worker", ["a", "b"]), ends("ps", ["a"])
    expected = Bound("a", ["ps:0", "worker:0"], "both", MB)
    assert bound(workers, servers, traffic(workers, servers, [MB]), True) == expected


def test_a_pull_and_a_push_come_one_after_the_other_or_at_the_same_time() -> None:
    assert seconds(125 * MB, nic_gbps=1.0, overlapped=False) == 2.0
    assert seconds(125 * MB, nic_gbps=1.0, overlapped=True) == 1.0


def test_a_ps_may_be_as_full_as_the_fullest_worker_host() -> None:
    assert share_of_a_ps(ends("worker", ["a", "b", "c", "d"])) == 0.25
    assert share_of_a_ps(ends("worker", ["a", "a", "b", "b"])) == 0.5


@pytest.mark.parametrize(
    ("pulled", "step_s"),
    [
        (10 * MB, 0.64),  # four ps of 10 MB: as much leaves each as reaches a worker, M / B twice
        (20 * MB, 1.28),  # a variable that cannot be cut: its ps is what everyone waits for
    ],
)
def test_balanced_the_workers_cards_or_the_largest_piece_bound_a_step(pulled: int, step_s: float) -> None:
    told = describe(ends("worker", list("abcd")), ends("ps", ["x"]), [40 * MB], {"ps": 4, "pulled": pulled}, 1.0, False)
    assert told.balanced.ps == 4 and told.balanced.seconds_per_step == pytest.approx(step_s)


def test_the_plan_tells_bytes_per_task_and_seconds_at_the_given_speed() -> None:
    fewest = {"ps": 1, "pulled": 125 * MB}
    told = describe(ends("worker", ["a"]), ends("ps", ["x"]), [125 * MB], fewest, nic_gbps=10.0, overlapped=True)
    assert to_values(told) == {
        "nic_gbps": 10.0,
        "seconds_per_step": pytest.approx(0.1),
        "bound": {"host": "x", "tasks": ["ps:0"], "direction": "both", "bytes": 125 * MB},
        "balanced": {"ps": 1, "seconds_per_step": pytest.approx(0.1)},
        "tasks": [
            {"task": "ps:0", "bytes_in": 125 * MB, "bytes_out": 125 * MB},
            {"task": "worker:0", "bytes_in": 125 * MB, "bytes_out": 125 * MB},
        ],
    }
