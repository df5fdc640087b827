"""A lookup in a layer of a functional Keras model is that of the same model without Keras, wherever it is made.

Building such a model calls each layer once for ids that nobody gives.
"""

from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from cluster import embedding
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.serving.saved_model import export
from cluster.task import Task
from tests.cluster.recommend.tables.test_checkpoints import rows_in
from tests.support.nightly import few
from tests.support.training.alone import train_alone

WIDTH, IDS = 3, 40


def rows_of(ids: Any) -> Any:
    """An id's rows of two tables, of which the second one's id is made of the first row."""
    first = embedding.lookup(embedding.table("first", WIDTH), ids)
    return first + embedding.lookup(embedding.table("then", WIDTH), 2 * ids + tf.cast(first[:, 0] > 0, ids.dtype))


class Rows(tf.keras.layers.Layer):  # type: ignore[misc]
    def call(self, ids: Any) -> Any:
        return rows_of(ids)


def in_keras(ids: Any) -> Any:
    given = tf.keras.Input([], dtype=tf.int64)
    score = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False, name="out")(Rows()(given))
    return tf.squeeze(tf.keras.Model(given, score)(ids), 1)


def by_hand(ids: Any) -> Any:
    return tf.reduce_sum(rows_of(ids) * tf.get_variable("out", [WIDTH], initializer=tf.ones_initializer()), 1)


def job_of(score: Any) -> Job:
    def data(task: Any, args: Any) -> Any:
        ids = np.arange(IDS, dtype=np.int64)
        values = {"i": ids, "y": (ids % 3).astype(np.float32)}
        return tf.data.Dataset.from_tensor_slices(values).batch(task.batch_size, drop_remainder=True)

    return Job(
        __file__,
        lambda task, args: data(task, args).repeat(),
        lambda i, y: tf.square(score(i) - y),
        lambda args: tf.train.GradientDescentOptimizer(0.1),
        data,
        lambda i: {"score": score(i)},
    )


@pytest.fixture(autouse=True)
def several_servers_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.05)


@pytest.mark.parametrize("settings", few([{"towers": 2}, {"mode": "async"}], [{"mode": "async"}]), ids=str)
def test_it_is_trained_measured_and_exported(settings: Dict[str, Any], tmp_path: Path) -> None:
    values, batch = [], {"steps": 6, "batch_size": 8 // settings.get("towers", 1), **settings}
    for score in (in_keras, by_hand):
        folder = tmp_path / score.__name__
        folder.mkdir()
        outcome = train_alone(job_of(score), folder, {}, **batch)
        assert outcome.succeeded, outcome.cause
        task = Task("worker", 0, {"ps": ["-"], "worker": ["-"]}, batch_size=4)
        report = export(job_of(score), task, {}, str(outcome.checkpoint), str(folder / "served"))
        assert report["tables"] == {"first": IDS, "then": len(rows_in(str(outcome.checkpoint), [WIDTH])["then"])}
        values.append((outcome.metrics["loss"], rows_in(str(outcome.checkpoint), [WIDTH])))
    (loss, rows), (expected_loss, expected) = values
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    for name, of_table in expected.items():
        assert set(rows[name]) == set(of_table)
        np.testing.assert_allclose([rows[name][each] for each in of_table], [*of_table.values()], rtol=2e-5, atol=2e-6)
