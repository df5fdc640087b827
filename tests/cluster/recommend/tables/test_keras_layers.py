"""A lookup in a layer of a functional Keras model is that of the same model without Keras, wherever it is made.

Building such a model calls each layer once for ids that nobody gives.
"""

import sys
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.job import Job
from cluster.recommend.tables.lookups import lookups
from cluster.runtime.tf_compat import tf
from cluster.serving.saved_model import export
from cluster.task import Task, Train
from tests.cluster.recommend.tables import plain
from tests.cluster.recommend.tables.test_checkpoints import rows_in
from tests.support.nightly import few
from tests.support.training.alone import joined, train_alone

pytestmark = pytest.mark.usefixtures("several_servers_in_one_process")
WIDTH, IDS = 3, 40


def rows_of(ids: Any) -> Any:
    """An id's rows of two tables, of which the second one's id is made of the first row."""
    first = embedding.lookup(embedding.table("first", WIDTH), ids)
    return first + embedding.lookup(embedding.table("then", WIDTH), 2 * ids + tf.cast(first[:, 0] > 0, ids.dtype))


class Chained(tf.keras.layers.Layer):  # type: ignore[misc]
    def call(self, ids: Any) -> Any:
        return rows_of(ids)


def in_keras(ids: Any) -> Any:
    given = tf.keras.Input([], dtype=tf.int64)
    score = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False, name="out")(Chained()(given))
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


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.lookups.MOST_ROWS", IDS)


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


def test_a_layer_of_rows_takes_the_place_of_keras_s_embedding_also_with_its_mask(few_rows: None) -> None:
    given = np.array([[3, 0, 7], [0, 0, 0], [5, 5, 1]], np.int64)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        entry = tf.keras.Input([3], dtype="int64")
        rows = embedding.Rows("history", WIDTH, padding=0)(entry)
        mean = tf.keras.layers.GlobalAveragePooling1D()(rows)  # of what the mask leaves
        largest = embedding.Rows("history", WIDTH, "max", padding=0)(entry)
        found = tf.keras.Model(entry, [mean, largest])(tf.constant(given))
        asked = lookups(graph)[-2:]
        assert {each.table for each in asked} == {embedding.table("history", WIDTH)}
        values = np.random.RandomState(0).randn(IDS, WIDTH).astype(np.float32)
        session.run(tf.assign(asked[0].variable, values).op)
        of_each = {each.numbers: session.run(each.ids) for each in asked}
        mean, largest = session.run(found, of_each)
    np.testing.assert_allclose(mean[[0, 2]], [values[[3, 7]].mean(0), values[[5, 5, 1]].mean(0)], rtol=1e-5)
    np.testing.assert_allclose(largest, [values[[3, 7]].max(0), np.zeros(WIDTH), values[[5, 1]].max(0)], rtol=1e-6)


def network(embed: Any) -> Any:
    """A model as a library makes it: an embedding with a mask, and one that is not trained."""
    entry = tf.keras.Input([3], dtype="int64")
    half = tf.keras.initializers.Constant(0.5)
    nothing = tf.keras.regularizers.l2(0.0)
    trained = embed(IDS, WIDTH, half, embeddings_regularizer=nothing, mask_zero=True, name="trained")
    fixed = embed(IDS, WIDTH, embeddings_initializer="ones", name="fixed")
    fixed.trainable = False
    means = [tf.keras.layers.GlobalAveragePooling1D()(each(entry)) for each in (trained, fixed)]
    return tf.keras.Model(entry, tf.keras.layers.Add()(means))


def histories() -> Dict[str, np.ndarray]:
    ids = np.array([[3, 0, 7], [2, 0, 0], [5, 5, 1], [7, 7, 7]], np.int64)
    return {"ids": ids, "y": np.arange(4, dtype=np.float32)}


def test_an_embedding_of_keras_s_arguments_trains_as_keras_s_own_in_one_process() -> None:
    def loss(embed: Any, ids: Any, y: Any) -> Any:
        return tf.square(tf.reduce_sum(network(embed)(ids), 1) - y)

    with tf.Graph().as_default(), tf.Session() as session:
        batch = {name: tf.constant(value) for name, value in histories().items()}
        of_examples = loss(tf.keras.layers.Embedding, **batch)
        (table,) = (each for each in tf.trainable_variables() if "trained" in each.name)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(of_examples), var_list=[table])
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        expected = session.run(table)

    job = Job(
        __file__,
        lambda task, args: tf.data.Dataset.from_tensors(histories()).repeat(),
        lambda ids, y: loss(embedding.Embedding, ids, y),
        lambda args: tf.train.GradientDescentOptimizer(0.1),
    )
    replica, session = joined(job, Train.from_dict({"batch_size": 4, "towers": 1}), {})
    for _ in range(3):
        replica.stepper.step(session)
    found = plain.rows(replica, session)
    assert not found.get("fixed") and set(found["trained"]) == {0, 1, 2, 3, 5, 7}
    for identity, row in found["trained"].items():
        np.testing.assert_allclose(row, expected[identity], rtol=1e-5, err_msg=str(identity))


class L2:
    """An author's own regularizer, with the name of one of Keras's."""

    factor = 1e-5


@pytest.mark.parametrize("regularizer", [tf.keras.regularizers.l2(1e-5), L2()])
def test_a_regularizer_of_rows_is_refused(regularizer: Any) -> None:
    with pytest.raises(ValueError, match="'t': expected no regularizer, which would read the whole table"):
        embedding.Embedding(IDS, WIDTH, embeddings_regularizer=regularizer, name="t")


def test_no_gradient_reaches_the_rows_of_a_sequence_of_a_layer_that_is_not_trained(few_rows: None) -> None:
    with tf.Graph().as_default() as graph:
        layer = embedding.Rows("history", WIDTH)
        layer.trainable = False
        found = layer.call(tf.ragged.constant([[3, 9], [], [4]]))
        assert isinstance(found, tf.RaggedTensor)
        assert tf.gradients(found.flat_values, lookups(graph)[0].variable) == [None]


def test_keras_translates_no_function_of_ours(few_rows: None) -> None:
    with tf.Graph().as_default():
        ids = embedding.lookup
        called: List[str] = []

        def look_up(*args: Any, **kwargs: Any) -> Any:
            called.append(sys._getframe(0).f_code.co_filename)
            return ids(*args, **kwargs)

        with pytest.MonkeyPatch.context() as here:
            here.setattr(embedding, "lookup", look_up)
            embedding.Rows("history", WIDTH)(tf.constant([[1, 2]]))
    assert set(called) == {__file__}
