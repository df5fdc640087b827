"""The chief keeps the best checkpoint, and ends training for all workers when it gets no better."""

from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from cluster.checkpoints import best
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.protocol.outcome import Outcome
from cluster.runtime.tf_compat import tf
from cluster.task import Best, Task, Train
from cluster.training.chief_pauses import BestCheckpoint
from cluster.training.graph_builder import Builder
from tests.support.training.alone import train_alone
from tests.support.training.jobs import clicks, scored, table
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually

JOB = "tests.support.training.jobs.scored"
ARGS = {"examples": 3000}


def settings(patience: int, **more: Any) -> Dict[str, Any]:
    """The age grows, so the first checkpoint that is measured is the best, and would be the first to be removed."""
    checkpoint = {"every_s": 0.2, "keep": 1}
    return {"steps": 1000000, "batch_size": 8, "best": {"min": "age", "patience": patience}, "checkpoint": checkpoint,
            **more}  # fmt: skip


def held_out_loss(checkpoint: str) -> float:
    """The loss of a checkpoint on the held-out data, in plain numpy."""
    weights = tf.train.load_checkpoint(checkpoint).get_tensor("weights")
    data = scored.examples(500)
    logits = data["x"].astype(float) @ weights
    return float(np.mean(np.log1p(np.exp(-np.where(data["label"] == 1, logits, -logits)))))


def check_files(outcome: Outcome) -> None:
    """The best checkpoint and the last one are there, and no other."""
    assert outcome.best_checkpoint is not None and outcome.checkpoint is not None
    assert outcome.best_checkpoint.endswith(f"model-{outcome.best['step']:.0f}")
    kept = {path.stem for path in Path(outcome.best_checkpoint).parent.glob("*.index")}
    assert kept == {Path(outcome.best_checkpoint).name, Path(outcome.checkpoint).name}


def test_all_workers_end_at_one_step_and_a_resumed_run_has_no_more_patience(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB, workers=2) as cluster:
        cluster.start_all(settings(2), ARGS)
        first = cluster.finish()
        check_files(first)
        loss = held_out_loss(str(first.best_checkpoint))
        assert first.best["age"] - first.best["step"] == pytest.approx(loss, rel=1e-5)  # it is the age of that model
        assert f"gradients given by each worker: {first.step} {first.step}\n" in cluster.log("worker", 0)
        other = cluster.outcome("worker", 1)
        assert other is not None and other.succeeded and other.step == first.step
        best = f"{first.best['age']:.4g} of step {first.best['step']:.0f}"
        ended = f"age was not below its best value, {best}, in 2 measurements"
        assert first.ended_early == ended
        cluster.start_all(settings(2), ARGS)
        again = cluster.finish()
    assert (again.step, again.best, again.ended_early) == (first.step, first.best, first.ended_early)


def test_a_chief_that_starts_again_goes_on_with_the_patience_of_the_one_before(tmp_path: Path) -> None:
    def record() -> best.BestSoFar:
        return best.read(tmp_path / "checkpoint") or best.BestSoFar("age", "min")

    with Cluster(tmp_path, JOB, workers=2) as cluster:
        cluster.start_all(settings(30, mode="async"), ARGS)
        eventually("two measurements were not better", lambda: record().worse >= 2)
        cluster.kill("worker", 0)
        before = record()
        cluster.start("worker", 0, settings(before.worse + 2, mode="async"), ARGS)
        outcome = cluster.finish()
        check_files(outcome)
    assert outcome.best["step"] == before.step
    assert str(outcome.ended_early).endswith(f"in {before.worse + 2} measurements")


def test_deltas_are_saved_and_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.05)
    measured, measure, steps = [], BestCheckpoint._measure, 8

    def count(best: BestCheckpoint, session: Any, step: int) -> None:
        measured.append(step)
        measure(best, session, step)

    monkeypatch.setattr(BestCheckpoint, "_measure", count)
    checkpoint = {"every_s": 3600, "delta_every_s": 0.0001, "keep": 100}
    outcome = train_alone(clicks, tmp_path, {"steps": 2}, steps=steps, batch_size=8, towers=1,
                          best={"min": "loss", "patience": 1}, checkpoint=checkpoint)  # fmt: skip
    assert outcome.succeeded and outcome.step == steps
    assert len(list((tmp_path / "checkpoint").glob("*.index"))) == steps
    assert measured == [1]  # which is whole


def test_a_metric_that_the_job_has_not_is_refused_before_training() -> None:
    task = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, batch_size=4)
    for job, expected in (
        (scored, r"expected a metric of .*scored.py \(loss, age, auc, gauc, calibration, logloss\), found 'acu'"),
        (table, r"expected a function evaluate for train\.best, found none; add it"),
    ):
        train = Train(tower_batch_size=4, best=Best(max="acu"))
        pool = [PoolMember(task, ["CPU:0"])]
        with pytest.raises(JobError, match=expected):
            Builder(Job.from_module(job), task, train, ARGS, pool).build()
