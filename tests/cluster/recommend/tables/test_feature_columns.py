"""A feature column of a table gives what TensorFlow's own column of the same rows gives, and trains the same."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.job import Job
from cluster.recommend.tables.lookups import lookups
from cluster.runtime.tf_compat import tf
from tests.support.training.alone import train_alone

columns = tf.feature_column
WIDTH, BUCKETS = 3, 40
FEATURES = {
    "word": np.array([["a", "b", ""], ["", "", ""], ["c", "c", "nobody"], ["a", "", "b"]]),
    "id": np.array([[3, -1, 7], [-1, -1, -1], [5, 5, 39], [0, 1, 2]], np.int64),
    "weight": np.array([[0.5, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 3.0, 1.5], [-1.0, 2.0, 0.5]], np.float32),
}
CATEGORICAL: Dict[str, Callable[[], Any]] = {
    "hashed": lambda: columns.categorical_column_with_hash_bucket("word", BUCKETS),
    "of a vocabulary, others left out": lambda: columns.categorical_column_with_vocabulary_list("word", ["a", "c"]),
    "ids": lambda: columns.categorical_column_with_identity("id", BUCKETS),
    "crossed": lambda: columns.crossed_column(["word", "id"], BUCKETS),
    "weighted": lambda: columns.weighted_categorical_column(CATEGORICAL["ids"](), "weight"),
}
Layer = Callable[[Dict[str, Any], List[Any]], Any]
LAYERS: Dict[str, Layer] = {"input_layer": columns.input_layer}
if hasattr(tf.keras.layers, "DenseFeatures"):  # Keras 3 has no feature columns
    LAYERS["DenseFeatures"] = lambda features, of: tf.keras.layers.DenseFeatures(of)(features)


def features() -> Dict[str, Any]:
    """The batch; a weight of an id that is missing is missing too."""
    made = {name: tf.constant(values) for name, values in FEATURES.items()}
    places = tf.where(tf.not_equal(made["id"], -1))
    shape = tf.shape(made["id"], out_type=tf.int64)
    return {**made, "weight": tf.SparseTensor(places, tf.gather_nd(made["weight"], places), shape)}


@pytest.mark.parametrize("combiner", ["mean", "sum", "sqrtn"])
@pytest.mark.parametrize("kind", CATEGORICAL)
@pytest.mark.parametrize("layer", LAYERS)
def test_it_gives_what_an_embedding_column_of_the_same_rows_gives(
    layer: str, kind: str, combiner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.recommend.tables.lookups.MOST_ROWS", BUCKETS)
    values = np.random.RandomState(0).randn(BUCKETS, WIDTH).astype(np.float32)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        given, of = features(), CATEGORICAL[kind]()
        found = LAYERS[layer](given, [embedding.column(embedding.table("t", WIDTH), of, combiner)])
        (asked,) = lookups(graph)
        plain = LAYERS[layer](given, [columns.embedding_column(of, WIDTH, combiner)])
        (variable,) = (each for each in tf.global_variables() if "embedding_weights" in each.name)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run([tf.assign(asked.variable, values).op, tf.assign(variable, values[: variable.shape[0]]).op])
        ours, theirs = session.run([found, plain], {asked.numbers: session.run(asked.ids)})
    assert ours.shape == (4, WIDTH) and np.abs(theirs).sum() > 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def job_of(column: Callable[[Any], Any]) -> Job:
    """Wide and deep, as Estimators have it; ``column`` embeds a categorical column."""

    def data(task: Any, args: Any) -> Any:
        labelled = {"word": FEATURES["word"], "id": FEATURES["id"], "y": np.arange(4, dtype=np.float32)}
        return tf.data.Dataset.from_tensors(labelled)

    def model(word: Any, id: Any, y: Any) -> Any:
        of = [column(CATEGORICAL["hashed"]()), column(CATEGORICAL["ids"]())]
        deep = columns.input_layer({"word": word, "id": id}, of)
        return tf.square(tf.reduce_sum(deep, 1) - y)

    return Job(__file__, lambda *of: data(*of).repeat(), model, lambda args: tf.train.AdagradOptimizer(0.1), data)


@pytest.mark.usefixtures("several_servers_in_one_process")
def test_it_trains_as_an_embedding_column_does(tmp_path: Any) -> None:
    half = tf.constant_initializer(0.5)

    def ours(of: Any) -> Any:
        return embedding.column(embedding.table(of.name, WIDTH, initializer=half), of)

    losses = []
    for name, column in (("ours", ours), ("plain", lambda of: columns.embedding_column(of, WIDTH, initializer=half))):
        (tmp_path / name).mkdir()
        outcome = train_alone(job_of(column), tmp_path / name, {}, steps=5, batch_size=4)
        assert outcome.succeeded, outcome.cause
        losses.append(outcome.metrics["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0] < 1.0


@pytest.mark.parametrize("layer", LAYERS)
def test_rows_that_are_not_to_be_trained_are_not(layer: str) -> None:
    frozen: Dict[str, Callable[[List[Any]], Any]] = {
        "input_layer": lambda of: columns.input_layer(features(), of, trainable=False),
        "DenseFeatures": lambda of: tf.keras.layers.DenseFeatures(of, trainable=False)(features()),
    }
    with tf.Graph().as_default() as graph:
        rows = frozen[layer]([embedding.column(embedding.table("t", WIDTH), CATEGORICAL["ids"]())])
        (asked,) = lookups(graph)
        assert tf.gradients(rows, asked.variable) == [None]


def test_tensorflow_parses_the_features_of_such_a_column() -> None:
    ours = embedding.column(embedding.table("t", WIDTH), CATEGORICAL["weighted"]())
    plain = columns.embedding_column(CATEGORICAL["weighted"](), WIDTH)
    assert columns.make_parse_example_spec([ours]) == columns.make_parse_example_spec([plain])


def test_a_name_in_the_place_of_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a table as the first argument, found 'user'"):
        embedding.column("user", CATEGORICAL["ids"]())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lambda: columns.numeric_column("x"), "expected one of tf.feature_column.categorical_column_with_…, found"),
        (lambda: columns.sequence_categorical_column_with_identity("id", 9), "expected no sequence, of which"),
        (lambda: "user", "found 'user'"),
    ],
)
def test_what_makes_no_ids_of_a_batch_is_refused(column: Callable[[], Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as refused:
        embedding.column(embedding.table("t", WIDTH), column())
    assert str(refused.value).startswith("embedding.column in 't': expected")
