"""A run's status in words."""

from typing import Any, Mapping

import pytest

from launch.status.run import EffectiveTime
from launch.view.run_text import (
    best,
    checkpoint,
    count,
    effective,
    elapsed,
    evaluation,
    head,
    metrics,
    progress,
    silence,
    training_metrics,
)
from tests.support.launch.statuses import status, task

BEGAN = "2026-11-23T12:00:00+00:00"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"global_step": 840, "steps": 2000, "steps_per_second": 31.23, "examples_per_second": 3993.6, "loss": 0.21},
         "step 840/2000 (42 %), 31.2 steps/s, 3994 examples/s, loss 0.21"),
        ({"global_step": 7, "steps": None}, "step 7"),
        ({"global_step": 0, "steps": 10}, "step 0/10 (0 %)"),
        ({"global_step": 61, "steps": 60}, "step 61/60 (100 %)"),  # two workers' last steps, at once
        ({"global_step": 10, "steps": 10, "loss": 0.0}, "step 10/10 (100 %), loss 0"),
    ],
)  # fmt: skip
def test_progress_has_what_is_known(fields: Mapping[str, Any], text: str) -> None:
    assert progress(status(**fields)) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "r-1  running"),
        ({"started": BEGAN, "updated": "2026-11-23T12:01:23+00:00"}, "r-1  running  1:23"),
        ({"started": BEGAN, "updated": "2026-11-23T12:00:07+00:00", "global_step": 10, "steps": 40,
          "steps_per_second": 0.5}, "r-1  running  7.0 s, about 1:00 left"),
        ({"started": BEGAN, "updated": "2026-11-24T12:00:00+00:00", "ended": "2026-11-23T14:03:04+00:00",
          "state": "failed", "global_step": 10, "steps": 40, "steps_per_second": 0.5}, "r-1  failed  after 2:03:04"),
    ],
)  # fmt: skip
def test_the_head_has_the_time_that_went_by_and_the_time_that_is_left(fields: Mapping[str, Any], text: str) -> None:
    assert head(status(**fields)) == text


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    assert elapsed(status(started=BEGAN, updated="2026-11-23T11:59:00+00:00")) == 0.0


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"global_step": 40}, []),
        ({"global_step": 40, "checkpoint_step": 40}, ["checkpoint of step 40, 0 steps ago"]),
        ({"global_step": 90, "checkpoint_step": 40, "steps_per_second": 10.0},
         ["checkpoint of step 40, 50 steps ago, about 5.0 s"]),
        ({"global_step": 90, "checkpoint_step": 40, "state": "succeeded"}, []),
    ],
)  # fmt: skip
def test_a_checkpoint_has_its_age(fields: Mapping[str, Any], lines: Any) -> None:
    assert checkpoint(status(**fields)) == lines


def test_metrics_at_the_end_have_a_line() -> None:
    assert metrics(status(metrics={"loss": 0.0475, "accuracy": 0.986})) == [
        "held-out data: loss 0.0475, accuracy 98.6 %"
    ]


def test_an_undefined_metric_is_called_so_and_many_slices_do_not_fill_the_view() -> None:
    many = {"auc": None, **{f"auc/{index}": 0.5 for index in range(20)}}
    line = metrics(status(metrics=many))[0]
    assert line.startswith("held-out data: auc undefined, auc/0 0.5, ")
    assert line.endswith("auc/10 0.5, and 9 more (launch status --json)")
    assert training_metrics(status(training_metrics={"auc": 0.75})) == ["while training: auc 0.75"]
    assert training_metrics(status()) == []
    found = status(evaluation={"step": 40, "auc": None})
    assert evaluation(found) == ["evaluator: step 40, auc undefined"]


def test_the_best_checkpoint_has_a_line_with_its_step_and_its_metric() -> None:
    assert best(status(best={"step": 800.0, "auc": 0.8123})) == ["best checkpoint: step 800, auc 0.8123"]
    assert best(status()) == []


def test_states_are_counted() -> None:
    assert count(status(task(), task(state="restarting"), task())) == "2 running, 1 restarting"


def test_silent_hosts_are_named_while_the_run_lives() -> None:
    assert silence(status(silent=["gpu02", "gpu03"])) == ["no messages now from gpu[02-03]"]
    assert silence(status(silent=[])) == silence(status(silent=["gpu02"], state="failed")) == []


def test_effective_time_is_a_share_and_the_parts_that_were_lost() -> None:
    found = status(effective=EffectiveTime(0.8, 80.0, 100.0, start_s=6.0, standing_s=10.0, saving_s=4.0))
    assert effective(found) == ["80 % effective: 1:20 of 1:40; start 6.0 s, standing 10.0 s, saving 4.0 s"]
    assert effective(status()) == effective(status(effective=EffectiveTime())) == []
