"""Whatever grows in a long run is found, and nothing else; its faults leave it alive."""

from typing import Any, Dict, List

import pytest

from tests.benchmarks.soak.drawn import APART, SURVIVED, drawn
from tests.benchmarks.soak.growth import MOST, Sample, age_class, grown, head, row


def samples(minutes: int, **series: Any) -> List[Sample]:
    """Samples whose values are functions of the minute."""
    return [
        Sample(minute, minute * 1000, "a fault", {name: value(minute) for name, value in series.items()})
        for minute in range(minutes)
    ]


def named(name: str, value: Any) -> Dict[str, Any]:
    return {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("launcher descriptors", lambda minute: 20 + minute % 3),
        ("launcher KiB in memory", lambda minute: 47_000 + 12_000 * (minute > 60 and minute % 2)),
    ],
)
def test_what_wavers_within_its_allowance_has_not_grown(name: str, value: Any) -> None:
    assert grown(samples(90, **named(name, value))) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("launcher descriptors", lambda minute: 20 + minute // 20),
        ("h1 agent KiB in memory, young", lambda minute: 30_000 + 100 * minute),
        ("ps:0 task threads, from 180 s on", lambda minute: 60 + minute // 4),
        ("other files", lambda minute: 400 + minute // 60),
        ("processes", lambda minute: 9 + minute // 89),
    ],
)
def test_a_leak_is_found_and_named_with_both_values(name: str, value: Any) -> None:
    (found,) = grown(samples(90, **named(name, value)))
    assert found.startswith(f"{name}: {value(29)} at most in the first 30 samples, {value(89)} at most in the last 30")


def test_only_processes_of_about_the_same_age_are_compared() -> None:
    assert [age_class(age) for age in (0, 59, 60, 179, 180, 9000)] == [
        "young", "young", "from 60 s on", "from 60 s on", "from 180 s on", "from 600 s on",
    ]  # fmt: skip
    young, old = "ps:0 task KiB, young", "ps:0 task KiB, from 600 s on"
    early = [Sample(minute, 0, "", {young: 300_000}) for minute in range(10)]
    assert grown([*early, *(Sample(minute, 0, "", {old: 500_000}) for minute in range(10, 30))]) == []


@pytest.mark.parametrize("name", sorted(MOST))
def test_what_is_bounded_by_design_has_its_bound_checked(name: str) -> None:
    most = MOST[name]
    assert grown(samples(30, **named(name, lambda minute: min(minute, most)))) == []
    assert grown(samples(30, **named(name, lambda minute: most + 1 if minute == 4 else 0))) == [
        f"{name}: expected {most:g} at most, found {most + 1:g}"
    ]


def test_a_row_has_a_cell_for_each_heading_and_the_value_whatever_its_age() -> None:
    values = {"h1 agent threads, from 60 s on": 3, "h1 agent descriptors, from 60 s on": 25}
    line = row(Sample(7, 8400, "worker:1 is killed", values))
    assert line.count("|") == head()[0].count("|") == head()[1].count("|")
    assert "| 7 | 8400 |" in line and "| 25, 3, – |" in line and line.endswith("| worker:1 is killed |")


def test_a_long_run_meets_every_kind_of_fault_and_no_host_loses_its_agent_too_often() -> None:
    met = drawn(1000, seed=3)
    assert met == drawn(1000, seed=3) != drawn(1000, seed=4)
    assert {fault.kind for fault in met} == set(SURVIVED)
    killed: Dict[str, int] = {}
    for minute, fault in enumerate(met):
        if fault.kind == "agent":
            assert minute - killed.get(fault.target, -APART) >= APART
            killed[fault.target] = minute
