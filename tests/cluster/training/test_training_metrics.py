"""While training, metrics are those of the newest examples of all workers, scored before the model knew them."""

from pathlib import Path
from typing import Any, Dict, List, Optional
from unittest.mock import Mock, patch

import numpy as np
import pytest

from cluster import metrics
from cluster.job import Job
from cluster.protocol.outcome import Progress
from cluster.runtime.tf_compat import tf
from cluster.scoring.metric_columns import Columns
from cluster.task import Task, Train
from cluster.training.callbacks import Step
from cluster.training.run_steps import EVERY_S, LastStep, TrainingMetrics
from cluster.training.trainer import Trainer
from tests.cluster.scoring.test_measures import area_by_pairs, grouped_by_pairs
from tests.cluster.steps.test_sync_worker import servers_of
from tests.support.training.jobs import scored
from tests.support.training.processes import Cluster

JOB = Job("job.py", lambda: None, lambda: None, lambda: None)
TASKS = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}


class Worker:
    """The metrics of one worker, in a session of its own."""

    def __init__(self, index: int, target: str, clock: Any):
        with tf.Graph().as_default() as graph:
            shown = [tf.placeholder(kind, [None]) for kind in (tf.int32, tf.float32, tf.string)]
            label, score, country = shown
            found = {"mean": metrics.mean(score), "auc": metrics.by(country, metrics.auc(label, score))}
            columns = Columns(JOB, [found])
            self.last = LastStep(Train(steps=100))
            self.metrics = TrainingMetrics(Task("worker", index, TASKS), columns, self.last, clock=clock)
        self._shown = shown
        self.session = tf.Session(target, graph=graph)
        if index == 0:
            self.metrics.open(self.session)

    def step(self, step: int, *values: Any) -> Dict[str, float]:
        """Take a step with a batch; the newest values of the metrics."""
        fetched = self.session.run(self.metrics.fetches(step - 1), dict(zip(self._shown, values)))
        self.metrics.note(self.session, Step(step, 0.0, 16), fetched)
        return self.metrics.latest


def batch(seed: int) -> List[np.ndarray]:
    random = np.random.RandomState(seed)
    return [random.randint(0, 2, 16), random.rand(16).astype(np.float32), random.choice(["FR", "DE"], 16)]


def test_the_chief_measures_its_own_examples_and_what_other_workers_wrote() -> None:
    now = [0.0]
    targets = servers_of([("ps", 1), ("worker", 2)])
    chief, other = (Worker(index, target, lambda: now[0]) for index, target in enumerate(targets))
    assert chief.step(1, *batch(0))["mean"] == pytest.approx(batch(0)[1].mean())  # nothing of the other one yet
    other.step(1, *batch(1))
    assert chief.step(2, *batch(2))["mean"] == pytest.approx(batch(0)[1].mean())  # it is not due
    now[0] += EVERY_S
    found = chief.step(3, *batch(3))
    label, score, country = (np.concatenate(column) for column in zip(batch(0), batch(2), batch(3), batch(1)))
    assert found["mean"] == pytest.approx(score.mean())
    for name, of in (("auc", country != ""), ("auc/FR", country == "FR"), ("auc/DE", country == "DE")):
        assert found[name] == pytest.approx(area_by_pairs(label[of], score[of], np.ones(of.sum())))
    chief.metrics.open(chief.session)  # as a chief that joins again does
    chief.last.step = 50  # training ends early
    assert chief.step(50, *batch(4))["mean"] == pytest.approx(
        np.mean([batch(0)[1], batch(2)[1], batch(3)[1], batch(4)[1]])
    )


def test_who_only_waits_still_measures_or_gives_its_newest_examples() -> None:
    now = [0.0]
    targets = servers_of([("ps", 1), ("worker", 2)])
    chief, other = (Worker(index, target, lambda: now[0]) for index, target in enumerate(targets))

    def rest(worker: Worker) -> Dict[str, float]:
        now[0] += EVERY_S
        worker.metrics.note(worker.session, Step(2, 0.0, 0), [])
        return worker.metrics.latest

    assert rest(chief) == {}
    other.step(1, *batch(1))
    assert rest(chief)["mean"] == pytest.approx(batch(1)[1].mean())
    other.step(2, *batch(2))
    rest(other)
    assert rest(chief)["mean"] == pytest.approx(np.mean([batch(1)[1], batch(2)[1]]))


def test_callbacks_hear_of_a_rest() -> None:
    trainer: Any = Mock()
    trainer.replica.stepper.step.return_value = (7, 0.5, None)
    trainer._graph.callbacks.fetching = [Mock(), Mock()]
    with patch("cluster.training.trainer.explain_errors"):
        assert Trainer._take_step(trainer, None, 6) == (Step(7, 0.5, 0), [[], []])


def scores_before_each_step(steps: int, size: int) -> Any:
    """Train the job ``scored`` in plain numpy: the logits of each step's examples before its update."""
    data = scored.examples(steps * size)
    weights, logits = np.zeros(3), []
    for x, label in zip(data["x"].reshape([steps, size, 3]), data["label"].reshape([steps, size])):
        logits.append(x @ weights)
        weights = weights - scored.RATE * ((1 / (1 + np.exp(-logits[-1])) - label)[:, None] * x).mean(0)
    return data, np.concatenate(logits)


def trained(folder: Path, train: Dict[str, Any], examples: int) -> Optional[Progress]:
    with Cluster(folder, "tests.support.training.jobs.scored", workers=1) as cluster:
        cluster.start_all(train, {"examples": examples})
        cluster.finish()
        return cluster.progress("worker", 0)


@pytest.mark.parametrize(
    "train",
    [{"batch_size": 4, "towers": 2, "accumulate": 2}, {"batch_size": 16, "mode": "async"}],
    ids=["synchronous, in four parts", "asynchronous"],
)
def test_an_example_is_scored_before_it_changes_the_model(tmp_path: Path, train: Dict[str, Any]) -> None:
    steps = 30
    progress = trained(tmp_path, {"steps": steps, **train}, steps * 16)
    assert progress is not None
    data, logits = scores_before_each_step(steps, 16)
    label, ones = data["label"], np.ones(len(logits))
    click = 1 / (1 + np.exp(-logits))
    expected = {
        "auc": area_by_pairs(label, logits, ones),
        "gauc": grouped_by_pairs(label, logits, data["user"], ones),
        "logloss": float(-np.log(np.where(label == 1, click, 1 - click)).mean()),
        "calibration": click.mean() / label.mean(),
    }
    for country in scored.COUNTRIES:
        of = data["country"] == country
        expected[f"calibration/{country}"] = click[of].mean() / label[of].mean()
    assert {name: progress.metrics[name] for name in expected} == pytest.approx(expected, rel=1e-5)
