"""The points of a grid: every combination, typed as by ``--set``; the next one, the best one, and the table."""

from dataclasses import replace
from typing import Any, Dict, List

import pytest

from cluster.protocol.typed_json import from_values, to_values
from cluster.task import Best
from launch.errors import UsageError
from launch.grid.points import (
    GridPoint,
    GridReport,
    axes,
    best_of,
    changes,
    following,
    lines,
    noted,
    overrides,
    points,
    report,
)
from tests.support.launch.statuses import status

TWO = ["args.rate=0.1,1e-3", "args.hidden=64,[1, 2],'a,b'"]


def test_each_value_has_the_type_that_set_gives_it_and_commas_within_it_separate_nothing() -> None:
    rate, hidden = axes(TWO)
    assert (rate.key, rate.values) == ("args.rate", (0.1, 0.001))
    assert hidden.values == (64, [1, 2], "a,b") and hidden.written == ("64", "[1, 2]", "'a,b'")


def test_the_points_are_every_combination_the_last_key_first_with_a_name_each() -> None:
    found = points("digits", axes(TWO))
    assert [point.name for point in found] == [f"digits.{number}" for number in range(1, 7)]
    assert found[1].set == {"args.rate": 0.1, "args.hidden": [1, 2]}
    assert overrides(axes(TWO))[1] == ("args.rate=0.1", "args.hidden=[1, 2]")
    assert len(overrides(axes(TWO))) == len(found)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["args.x"], r"--grid: expected KEY=VALUE,VALUE such as args.hidden=64,128, found 'args.x'"),
        (["args.x="], "found 'args.x='"),
        (["=1,2"], "found '=1,2'"),
        (["args.x=[1,2"], r"--grid args.x: expected KEY=VALUE,VALUE .*, found '\[1,2'"),
        (["args.x=1,2,1"], "--grid args.x: expected each value once, found 1 twice"),
        (["args.x=1,2", "args.x=3,4"], "--grid args.x: expected each key once, found it twice"),
        (["name=a,b"], "--grid name: expected another key"),
        (["args.x=" + ",".join(map(str, range(40))), "args.y=" + ",".join(map(str, range(40)))], "at most 1000 points"),
    ],
)
def test_an_option_that_makes_no_grid_is_refused(options: List[str], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        axes(options)


def point(number: int = 1, state: str = "succeeded", **fields: Any) -> GridPoint:
    """A point of a grid."""
    return GridPoint(f"r.{number}", {"args.x": number}, state=state, **fields)


def test_the_next_point_has_no_result_and_is_not_busy_and_one_that_failed_comes_last() -> None:
    found = [point(1), point(2, "failed"), point(3, "stopped"), point(4, "waiting"), point(5, "running")]
    assert following(found, []) == 2 and following(found, [2]) == 3 and following(found, [2, 3]) == 4
    assert following(found[:2], []) == 1 and following(found[:2], [1]) is None


def test_the_best_point_has_succeeded_with_a_value() -> None:
    found = [point(1, value=3.0), point(2, "failed", value=0.1), point(3, value=2.0), point(4), point(5, value=2.0)]
    assert best_of(found, "min") == found[2] and best_of(found, "max") == found[0]
    assert best_of(found[1:2], "min") is None


def test_a_run_is_compared_by_the_metric_of_best_else_by_the_loss_on_held_out_data_else_by_its_last_loss() -> None:
    of: Dict[str, Any] = {
        "state": "succeeded",
        "loss": 0.5,
        "best": {"step": 3.0, "auc": 0.9},
        "metrics": {"loss": 0.4, "auc": 0.8},
    }
    assert noted(point(), status(**of), Best(max="auc")).value == 0.9
    assert noted(point(), status(**{**of, "best": None}), Best(max="auc")).value == 0.8
    assert noted(point(), status(**of), Best()).value == 0.4
    assert noted(point(), status(**{**of, "metrics": {}}), Best()).value == 0.5
    assert noted(point(), status(**{**of, "metrics": {"loss": None}}), Best()).value is None
    assert noted(point(), status(**{**of, "metrics": {"loss": float("nan")}}), Best()).value is None


def test_a_run_that_is_not_over_has_no_value_yet() -> None:
    found = noted(point(1, "waiting"), status(loss=0.5, global_step=7, steps=9), Best())
    assert found == point(1, "running", run="r-1", loss=0.5, global_step=7, steps=9)


def test_the_table_has_a_row_for_each_point_and_the_best_below() -> None:
    found = [
        point(1, value=0.25, loss=0.5, run="r.1-2026", global_step=9, steps=9),
        point(2, "failed", cause="worker:0@a: exit code 3"),
        point(3, "waiting"),
    ]
    assert lines(report(found, Best())) == [
        "point  args.x  state      step  loss  final loss  cause",
        "r.1         1  succeeded   9/9   0.5        0.25",
        "r.2         2  failed        -     -           -  worker:0@a: exit code 3",
        "r.3         3  waiting       -     -           -",
        "best: r.1 (args.x=1), loss 0.25; its run is r.1-2026",
    ]
    assert all(len(line) <= 50 for line in lines(report(found, Best()), 50)[:-1])


def test_a_report_survives_json() -> None:
    first = report([replace(point(1, value=2.0), set={"args.x": [1, {"a": None}]})], Best(min="error"))
    assert from_values(GridReport, to_values(first)) == first
    assert (first.metric, first.goal, first.best) == ("error", "min", "r.1")


def test_each_key_that_differs_between_two_files_is_named() -> None:
    before = {"name": "r", "train": {"steps": 1, "mode": "sync"}, "args": {"x": 1}}
    now = {"name": "r", "train": {"steps": 2, "mode": "sync"}, "job": "a"}
    assert changes(before, now) == [
        "train.steps: expected 1 as before, found 2",
        'args: expected {"x": 1} as before, found null',
        'job: expected null as before, found "a"',
    ]
    assert changes(before, dict(before)) == []
