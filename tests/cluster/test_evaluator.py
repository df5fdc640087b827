"""An evaluator follows the run's checkpoints, without a filesystem that it shares with the chief."""

from pathlib import Path
from typing import Dict

import numpy as np
import pytest

from cluster.engine import tf
from cluster.task import Task
from jobs import digits
from tests.cluster.processes import Cluster
from tests.waiting import eventually


def measured(checkpoint: str) -> Dict[str, float]:
    """Loss and accuracy on the held-out digits of a checkpoint, by a plain program."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.data.make_one_shot_iterator(digits.evaluate(Task("worker", 0, {}), {})).get_next()
        loss, metrics = digits.model(**batch, args={})
        tf.train.Saver(tf.trainable_variables()).restore(session, checkpoint)
        losses, hits = session.run([loss, metrics["accuracy"]])  # they are one batch
        return {"loss": float(np.mean(losses)), "accuracy": float(np.mean(hits))}


def test_every_checkpoint_that_it_measures_is_worth_what_a_plain_program_finds(tmp_path: Path) -> None:
    train = {"steps": 1000000, "batch_size": 16, "checkpoint": {"every_s": 1, "keep": 1000}}
    with Cluster(tmp_path, "digits", workers=1, evaluator=1) as cluster:
        cluster.start_all(train)
        eventually("a second checkpoint is measured", lambda: cluster.step("evaluator") > 0)
        first = cluster.step("evaluator")
        eventually("a later checkpoint is measured", lambda: cluster.step("evaluator") > first)
        told = cluster.progress("evaluator", 0)
    assert told is not None
    found = measured(str(tmp_path / "checkpoint" / f"model-{told.step}"))
    assert told.metrics == pytest.approx(found, rel=1e-4)
    assert [path.name for path in (tmp_path / "evaluator.0").iterdir() if "model" in path.name] == []


def test_an_evaluator_of_a_job_without_evaluate_is_refused(tmp_path: Path) -> None:
    with Cluster(tmp_path, "tests.cluster.jobs.table", workers=1, evaluator=1) as cluster:
        cluster.start("evaluator", 0, {"steps": 1})
        assert cluster.exit_code("evaluator", 0) == 1
        outcome = cluster.outcome("evaluator", 0)
    assert outcome is not None and outcome.retry is False
    assert "expected a function evaluate for the evaluator" in str(outcome.cause)


def test_the_evaluator_leaves_with_success_when_the_last_step_was_measured(tmp_path: Path) -> None:
    """Seen from an evaluator whose last step is one that a chief, which goes on, has passed."""
    train = {"steps": 20, "batch_size": 16, "checkpoint": {"every_s": 1}}
    with Cluster(tmp_path, "digits", workers=1, evaluator=1) as cluster:
        cluster.start_all({**train, "steps": 1000000})
        eventually("step 20 is passed and measured", lambda: cluster.step("evaluator") >= 20)
        cluster.kill("evaluator", 0)
        cluster.start("evaluator", 0, train)
        assert cluster.exit_code("evaluator", 0) == 0
        outcome = cluster.outcome("evaluator", 0)
    assert outcome is not None and outcome.succeeded and outcome.metrics["accuracy"] > 0.1
