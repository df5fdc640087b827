"""Clocks that differ are put on the worker's by what travelled."""

from typing import List

from cluster.trace.spans import (
    COMPUTE,
    PULLS,
    PUSHES,
    ClockCorrection,
    DevicePlace,
    TraceSpan,
    Transfer,
    clocks,
    on_one_clock,
)

WORKER, PS = DevicePlace("worker:0", "CPU:0"), DevicePlace("ps:0", "CPU:0")


def step(ahead_us: int) -> List[TraceSpan]:
    """The ps makes ``v`` at 100, it arrives at 150; the worker makes ``g`` at 200, it arrives at 230."""
    pull, push = Transfer("v", 4, PS, WORKER), Transfer("g", 4, WORKER, PS)
    return [
        TraceSpan(PS, COMPUTE, "v", 100 + ahead_us, 5),
        TraceSpan(WORKER, PULLS, "v", 140, 10, pull, ["v"]),
        TraceSpan(WORKER, COMPUTE, "g", 200, 5),
        TraceSpan(PS, PUSHES, "v", 220 + ahead_us, 10, push, ["v"]),
    ]


def test_clocks_that_nothing_speaks_against_stay_as_they_are() -> None:
    for ahead_us in (0, 25, -25):
        assert clocks(step(ahead_us), "worker:0") == {"ps:0": ClockCorrection(0, 0)}


def test_a_clock_that_would_have_things_arrive_before_they_are_made_is_put_into_the_middle_of_what_can_be() -> None:
    for ahead_us in (1_000_000, -1_000_000):
        found = clocks(step(ahead_us), "worker:0")
        assert found == {"ps:0": ClockCorrection(10 - ahead_us, 40)}  # from -30 to 50 beside the truth
        moved = on_one_clock(step(ahead_us), found)
        assert [span.start_us for span in moved] == [110, 140, 200, 230]


def test_with_one_direction_known_a_clock_is_moved_no_further_than_it_must() -> None:
    assert clocks(step(1000)[:2], "worker:0") == {"ps:0": ClockCorrection(-950, 0)}
