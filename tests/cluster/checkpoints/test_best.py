"""The best checkpoint and the patience are those of the measurements in their order, whatever restarts lie between."""

import math
from pathlib import Path
from typing import List, Optional

import numpy as np
import pytest

from cluster.checkpoints.best import BestSoFar, begin, is_patient, measured, read, reason, write
from cluster.task import Best

AUC = Best(max="auc", patience=3)


def after(settings: Best, values: List[float], first: int = 1) -> BestSoFar:
    record = begin(settings, None)
    for step, value in enumerate(values, first):
        record = measured(record, step, value)
    return record


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_first_of_the_best_values_is_the_best_and_all_later_ones_count(
    seed: int, goal: str, tmp_path: Path
) -> None:
    random = np.random.RandomState(seed)
    values = random.randint(0, 5, 12) / 4 + np.where(random.rand(12) < 0.2, np.nan, 0)
    settings = Best(max="m") if goal == "max" else Best(min="m")
    record = begin(settings, None)
    for step, value in enumerate(values.tolist(), 1):
        record = measured(record, step, value)
        write(tmp_path, record)
        record = begin(settings, read(tmp_path))  # a chief starts again after each measurement
    known = [value for value in values.tolist() if not math.isnan(value)]
    best = max(known) if goal == "max" else min(known)
    step = values.tolist().index(best) + 1
    assert (record.step, record.value, record.worse) == (step, best, len(values) - step)


def test_patience_ends_after_so_many_measurements_that_were_not_better() -> None:
    assert is_patient(AUC, after(AUC, [0.5, 0.7, 0.7, 0.6]))
    over = after(AUC, [0.5, 0.7, 0.7, 0.6, 0.1])
    assert not is_patient(AUC, over)
    assert reason(over) == "auc was not above its best value, 0.7 of step 2, in 3 measurements"
    assert is_patient(Best(max="auc"), over)
    assert not is_patient(AUC, after(AUC, [math.nan] * 3))
    assert reason(after(AUC, [math.nan] * 3)) == "auc was undefined in 3 measurements"


def test_a_step_that_is_measured_again_counts_once_and_replaces_its_own_value() -> None:
    record = after(AUC, [0.7, 0.6])
    again = measured(measured(record, 1, 0.5), 2, 0.4)  # training went back to before step 1
    assert (again.step, again.value, again.worse) == (1, 0.5, 1)
    assert measured(again, 2, 0.55).step == 2


@pytest.mark.parametrize(
    ("settings", "last"),
    [(AUC, 9), (Best(max="auc", patience=2), 9), (Best(max="auc", patience=4), None), (Best(max="auc"), None)],
)
def test_a_decision_to_end_stands_unless_the_patience_is_longer_now(settings: Best, last: Optional[int]) -> None:
    decided = BestSoFar("auc", "max", 1, 0.7, 4, worse=3, last=9, why="…")
    assert begin(settings, decided).last == last
    assert begin(settings, decided).worse == 3


def test_a_record_of_another_metric_does_not_count() -> None:
    decided = BestSoFar("auc", "max", 1, 0.7, 4, worse=3, last=9)
    assert begin(Best(min="auc"), decided) == BestSoFar("auc", "min")
    assert begin(Best(max="gauc"), decided) == BestSoFar("gauc", "max")


def test_a_broken_record_is_an_error_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    (tmp_path / "best.json").write_text('{"metric": 5}')
    with pytest.raises(ValueError, match="metric: expected a text"):
        read(tmp_path)
