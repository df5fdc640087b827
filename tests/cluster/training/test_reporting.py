"""What a worker's log tells of its progress."""

import itertools
import math
import re
from types import SimpleNamespace
from typing import Any, List

import pytest

from cluster.errors import NonFiniteError
from cluster.protocol.outcome import Reporter
from cluster.training.callbacks import Step
from cluster.training.reporting import Activity, TrainingProgress


def test_the_log_tells_once_that_records_are_awaited_and_not_where_a_step_is_counted_late(capsys: Any) -> None:
    seconds = itertools.count()
    progress = TrainingProgress(Reporter(None, clock=lambda: next(seconds)), 9, dict)
    worker: Any = SimpleNamespace(dropped=0, waited_s=0.0)
    progress.begin(3)
    for number, examples in [(4, 2), (4, 2), (4, 0), (4, 0), (5, 2), (5, 0)]:
        progress.note(Step(number, 0.5, examples), worker)
    progress.report_now(6)  # a save
    progress.note(Step(6, 0.5, 2), worker)
    printed = re.findall(r"step \d/9(?: loss|: waiting for records)", capsys.readouterr().out)
    waits = "waiting for records"
    assert printed == ["step 4/9 loss", "step 4/9 loss", f"step 4/9: {waits}", "step 5/9 loss", f"step 5/9: {waits}",
                       "step 6/9 loss"]  # fmt: skip


def test_the_log_has_no_loss_of_a_worker_that_had_no_record_yet(capsys: Any) -> None:
    progress, worker = TrainingProgress(Reporter(None), 9, dict), SimpleNamespace(dropped=0, waited_s=0.0)
    for examples in (0, 2):
        progress.begin(0)
        progress.note(Step(1, math.nan, examples), worker)  # type: ignore[arg-type]
    assert re.findall(r"step 1/9( loss nan)? \d", capsys.readouterr().out) == ["", " loss nan"]


def test_a_step_after_a_rest_is_a_first_step_still() -> None:
    phases: List[str] = []
    reporter: Any = SimpleNamespace(
        heartbeat=SimpleNamespace(begin_phase=lambda *of: None), recorder=SimpleNamespace(begin=phases.append)
    )
    activity = Activity(reporter)
    for is_rest in (True, True, False, True, False):
        activity.begin_step((True,))
        if is_rest:
            activity.rest()
    assert phases == ["first step"] * 3 + ["step"] * 2


def test_a_worker_that_rests_has_trained_nothing_meanwhile(capsys: Any) -> None:
    progress = TrainingProgress(Reporter(None), 2, dict)
    worker: Any = SimpleNamespace(dropped=0, waited_s=0.0)
    progress.begin(0)
    for number, examples in [(1, 2), (1, 0), (2, 2)]:
        progress.note(Step(number, math.nan, examples), worker)
    with pytest.raises(NonFiniteError, match="found none in 2 steps"):
        progress.refuse_nothing_trained("worker:0")
