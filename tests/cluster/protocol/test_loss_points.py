"""The chief's points reach a reader each once, whichever reports the reader misses."""

import json
import math
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.protocol.loss_points import MOST, LossPoint, LossPoints, count, new_points
from cluster.protocol.outcome import Progress, Reporter, read_progress


def reported(steps_of_intervals: List[int]) -> List[Dict[str, Any]]:
    """The report of each interval, of so many steps whose loss is their number."""
    points, step, found = LossPoints(), 0, []
    for steps in steps_of_intervals:
        for _ in range(steps):
            step += 1
            points.add(step, float(step))
        found.append(json.loads(json.dumps(points.fields())))
    return found


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=12), st.data())
def test_a_reader_that_misses_every_second_report_has_each_step_once(intervals: List[int], data: Any) -> None:
    reports = reported(intervals)
    last = len(reports) - 1
    read = [at for at in range(len(reports)) if at == last or at % 2 or data.draw(st.booleans())]
    taken, found = 0, []
    for at in read:
        found += new_points(reports[at], taken)
        taken = count(reports[at])
    begin = 0
    for point in found:
        assert point.step - begin == point.steps  # no step is missing, and none is there twice
        assert point.loss == pytest.approx((begin + 1 + point.step) / 2)  # the mean of its steps
        begin = point.step
    assert begin == sum(intervals)


def test_a_report_has_few_points_however_many_steps_it_has() -> None:
    reports = reported([100_000, 3, 100_000])
    assert [len(report["curve"]) <= 2 * MOST for report in reports] == [True] * 3
    assert new_points(reports[1], count(reports[0]))[-1].step == 100_003


def test_a_report_that_was_read_has_no_new_point() -> None:
    (report,) = reported([5])
    assert new_points(report, count(report)) == [] == new_points({}, 0)


def test_a_loss_that_is_no_number_reaches_the_reader_as_one(tmp_path: Any) -> None:
    points = LossPoints()
    points.add(1, math.nan)
    Reporter(tmp_path).progress(Progress(1, **points.fields()), force=True)
    found = read_progress(tmp_path)
    assert found is not None and math.isnan(new_points(vars(found), 0)[0].loss)


@pytest.mark.parametrize("point", [[], [1.0, 2.0], [math.nan, 1.0, 1], [-1, 1.0, 1], [5, 1.0, 0]])
def test_a_malformed_point_is_left_out(point: List[float]) -> None:
    assert new_points({"curve": [point, [7, 1.0, 1]]}, 0) == [LossPoint(7, 1.0, 1)]


def test_a_chief_that_is_killed_while_it_writes_on_a_full_disk_costs_no_point(tmp_path: Any) -> None:
    reports = reported([3, 3, 3])
    file = tmp_path / "progress.json"
    for cut in range(1, len(json.dumps({"step": 6, **reports[1]}))):  # the second report is torn: written in place
        file.write_text(json.dumps({"step": 6, **reports[1]})[:cut])
        with pytest.raises(ValueError):
            read_progress(tmp_path)
    found = [*new_points(reports[0], 0), *new_points(reports[2], count(reports[0]))]
    assert [point.step for point in found] == list(range(1, 10))
