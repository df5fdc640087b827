"""A straggler is told by the time it needs for itself, not by the step time, which is the same for all."""

from typing import Dict

import pytest

from launch.agent.supervision.status import Judgement, judge
from launch.agent.supervision.task_records import Pace


def paces(**own_and_wait_ms: float) -> Dict[str, Pace]:
    """Workers of one run whose steps take 100 ms: what each needs for itself."""
    return {name: Pace(own, 100 - own) for name, own in own_and_wait_ms.items()}


def test_of_equal_workers_none_is_slow_and_nothing_is_lost() -> None:
    assert judge(paces(a=80, b=80, c=80)) == Judgement((), 0.0)


@pytest.mark.parametrize("others", [1, 2, 3, 30])
def test_one_that_needs_twice_as_long_is_slow_among_however_many(others: int) -> None:
    judged = judge(paces(slow=90, **{f"w{i}": 45 for i in range(others)}))
    assert judged.stragglers == ("slow",)
    assert judged.waiting_share == pytest.approx(0.45)


def test_several_are_told_with_the_slowest_first() -> None:
    assert judge(paces(a=30, b=60, c=90, d=30, e=30)).stragglers == ("c", "b")


def test_a_little_slower_is_not_slow() -> None:
    assert judge(paces(a=80, b=90, c=85)).stragglers == ()


def test_what_even_the_slowest_waits_for_is_nobodys_fault() -> None:
    judged = judge({"slow": Pace(60, 40), "quick": Pace(30, 70)})
    assert judged.stragglers == ("slow",) and judged.waiting_share == pytest.approx(0.3)


def test_steps_of_a_millisecond_have_no_stragglers() -> None:
    assert judge({"a": Pace(0.5, 0.5), "b": Pace(1.5, 0.1)}).stragglers == ()


def test_a_worker_alone_has_nobody_to_wait_for() -> None:
    assert judge(paces(a=80)) == Judgement((), None)
    assert judge({}) == Judgement((), None)
