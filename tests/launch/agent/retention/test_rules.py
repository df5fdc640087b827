"""Which runs of a name go: each bound by itself, never what must stay, and by default never a result."""

from typing import Any, List

import pytest

from cluster.protocol.settings import DEFAULT_KEEP, Keep
from launch.agent.retention.rules import DAY_S, GIB, PastRun, PruneDecision, decide


def run(name: str, days: float = 0.0, gib: float = 1.0, **more: Any) -> PastRun:
    return PastRun(name, int(gib * GIB), days * DAY_S, more.pop("has_results", True), **more)


def going(past: List[PastRun], **bounds: Any) -> List[str]:
    """The runs that go, the newest first."""
    found = decide(past, Keep(**bounds)).going
    return [each.run for each in past if each.run in found]


FOUR = [run("d", 1), run("c", 10), run("b", 100), run("a", 99)]  # newest first


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        ({}, []),
        ({"runs": 4}, []),
        ({"runs": 1}, ["c", "b", "a"]),
        ({"days": 99}, ["b"]),
        ({"gib": 4}, []),
        ({"gib": 3.9}, ["a"]),
        ({"gib": 1.5}, ["c", "b", "a"]),
        ({"days": 99.5, "gib": 2}, ["b", "a"]),  # what goes by its age makes room
        ({"runs": 3, "days": 99.5}, ["b", "a"]),
    ],
)
def test_each_bound_takes_the_oldest_runs_beyond_it(bounds: Any, gone: List[str]) -> None:
    assert going(FOUR, **bounds) == gone


def test_what_must_stay_stays_and_is_told_with_its_bound() -> None:
    runs = [run("d", needed="the newest of its name"), run("c"), run("b", needed="its agent on h lives"), run("a")]
    assert decide(runs, Keep(runs=1)) == PruneDecision(
        going={"c": "more than 1 run of its name", "a": "more than 1 run of its name"},
        spared={"b": "more than 1 run of its name"},
    )


def test_bytes_of_what_must_stay_count_and_others_make_room_for_it() -> None:
    runs = [run("c", gib=1), run("b", gib=5, needed="its agent on h lives"), run("a", gib=1)]
    decision = decide(runs, Keep(gib=6))
    assert list(decision.going) == ["a"] and not decision.spared
    assert set(decide(runs, Keep(gib=2)).going) == {"a", "c"}
    assert decide(runs, Keep(gib=2)).spared == {"b": "the runs of its name exceed 2 GiB"}


def test_by_default_a_result_stays_however_old_it_is_and_what_has_none_goes_after_90_days() -> None:
    runs = [run("d", 1000), run("c", 91, has_results=False), run("b", 89, has_results=False), run("a", 9999)]
    assert decide(runs, DEFAULT_KEEP).going == {"c": "not used for 90 days, and it left only logs and records"}


def test_bounds_that_a_file_names_count_for_results_too() -> None:
    assert going([run("b"), run("a", 91)], days=90) == ["a"]
