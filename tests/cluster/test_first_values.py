"""The chief of a new run has the first values already: it gave them to the servers."""

from pathlib import Path
from typing import Any, List

import pytest

from cluster.job import Job
from cluster.protocol.outcome import Outcome
from cluster.runtime.tf_compat import tf
from cluster.variables.local_copies import LocalCopies
from tests.support.training.alone import train_alone


def model(x: Any) -> Any:
    """The gradient is twice the variable, which begins with 3, and is a hundredth more in the second step."""
    step = tf.cast(tf.train.get_global_step(), tf.float32)
    return x * tf.get_variable("w", [], initializer=tf.constant_initializer(3.0)) ** 2 * (1 + step / 100)


JOB = Job(
    "job.py",
    lambda task, args: tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(),
    model,
    lambda args: tf.train.GradientDescentOptimizer(0.1),
)


@pytest.mark.parametrize("sync", ["overlapped", "plain"])
def test_it_does_not_fetch_them_back_and_one_that_goes_on_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    filled: List[int] = []
    fill = LocalCopies.fill

    def noted(self: LocalCopies, session: Any, step: int, also: Any = ()) -> None:
        filled.append(step)
        fill(self, session, step, also)

    monkeypatch.setattr(LocalCopies, "fill", noted)
    kept = {"sync": sync, "batch_size": 1, "checkpoint": {"every_s": 0}}
    new = train_alone(JOB, tmp_path, {}, steps=1, **kept)
    assert filled == [] and value(new) == pytest.approx(3 * 0.8)
    again = train_alone(JOB, tmp_path, {}, steps=2, **kept)
    assert filled == [1] and value(again) == pytest.approx(3 * 0.8 * (1 - 0.2 * 1.01))


def value(outcome: Outcome) -> float:
    return float(tf.train.load_checkpoint(outcome.checkpoint).get_tensor("w"))
