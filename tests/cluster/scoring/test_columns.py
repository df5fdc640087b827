"""Metrics of a model become columns: each tensor once, of every tower, and nothing that has no meaning."""

from typing import Any, Dict, Iterator

import numpy as np
import pytest

from cluster import metrics
from cluster.errors import JobError
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.scoring.examples import NewestExamples
from cluster.scoring.metric_columns import Columns

JOB = Job("job.py", lambda: None, lambda: None, lambda: None)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def values(*towers: Dict[str, metrics.Metric]) -> Dict[str, float]:
    columns = Columns(JOB, towers)
    with tf.Session() as session:
        measurement = columns.measurement()
        measurement.add(session.run(columns.tensors))
        return measurement.measured().values


def test_a_tensor_that_many_metrics_use_is_fetched_once() -> None:
    label, score, user = tf.constant([0, 1]), tf.constant([0.1, 0.2]), tf.constant(["a", "b"])
    found = {"auc": metrics.auc(label, score), "gauc": metrics.grouped_auc(label, score, user)}
    found["by user"] = metrics.by(user, metrics.logloss(label, score))
    assert len(Columns(JOB, [found]).tensors) == 4  # strings are groups by their fingerprint, and slices by name


def test_examples_of_all_towers_count_whatever_their_types() -> None:
    def tower(label: Any, score: Any) -> Any:
        return {"auc": metrics.auc(tf.constant(label), tf.constant(score, tf.float16))}

    assert values(tower([True, False], [0.75, 0.5]), tower([True], [0.25])) == {"auc": 0.5}


def test_a_group_of_strings_is_the_group_of_the_same_numbers() -> None:
    random = np.random.RandomState(3)
    label, score, group = random.randint(0, 2, 80), random.rand(80), random.randint(0, 9, 80)
    texts = tf.constant([f"user {each}" for each in group])
    found = values({kind: metrics.grouped_auc(label, score, of) for kind, of in (("ints", group), ("texts", texts))})
    assert found["ints"] == found["texts"]


@pytest.mark.parametrize(
    "metric, message",
    [
        (lambda: metrics.auc(tf.zeros([3, 1]), tf.zeros([3])), r"expected a label of shape \[batch\] for the metric m"),
        (lambda: metrics.auc(tf.constant(["a"]), tf.zeros([1])), "expected a label of numbers for the metric m"),
        (lambda: metrics.grouped_auc([1], [0.5], [0.5]), "expected a group of integers or strings for the metric m"),
        (lambda: metrics.by([0.5], metrics.mean([1.0])), "expected a slice of integers or strings for the metric m"),
    ],
)
def test_a_tensor_that_cannot_be_measured_is_refused_when_the_graph_is_built(metric: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        Columns(JOB, [{"m": metric()}])


def test_towers_with_different_metrics_and_too_many_slices_are_refused() -> None:
    mean = metrics.mean(tf.zeros([1]))
    with pytest.raises(JobError, match="expected the same metrics for each tower"):
        Columns(JOB, [{"a": mean}, {"b": mean}])
    with pytest.raises(JobError, match="expected at most 1000 metrics with their slices"):
        Columns(JOB, [{str(i): metrics.by(tf.zeros([1], tf.int32), mean, most=100) for i in range(10)}])


def test_logits_for_logloss_are_named_with_the_metric_and_the_model() -> None:
    with pytest.raises(JobError, match=r"the metric loss2: expected scores from 0 to 1, found 3; pass probabilities"):
        values({"loss2": metrics.logloss(tf.constant([1.0]), tf.constant([3.0]))})


def test_slices_of_slices_are_refused() -> None:
    sliced = metrics.by([1], metrics.mean([1.0]))
    with pytest.raises(ValueError, match="without slices"):
        metrics.by([1], sliced)
    with pytest.raises(ValueError, match="expected `most` to be from 1 to 100, found 0"):
        metrics.by([1], metrics.mean([1.0]), most=0)


@pytest.mark.parametrize("seed", range(10))
def test_the_newest_examples_are_the_last_of_all_and_stay_side_by_side(seed: int) -> None:
    random = np.random.RandomState(seed)
    most = int(random.randint(1, 40))
    newest, everything = NewestExamples(2, most), np.zeros(0)
    assert newest.columns() is None
    for _ in range(30):
        batch = random.rand(random.randint(0, 15))
        newest.add([batch, -batch])
        everything = np.concatenate([everything, batch])
        first, second = newest.columns() or []
        assert (first == everything[-most:]).all()
        assert (second == -first).all()
