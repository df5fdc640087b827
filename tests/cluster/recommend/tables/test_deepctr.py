"""Models of DeepCTR train as in one process, where the rows of all embeddings are on the servers.

The models are DeepCTR's own functions. Only the class that they make embeddings with is another. DeepCTR needs Keras
2, and is no part of the tests' environment. `.venv/bin/pip install --no-deps deepctr==0.9.4` adds it. With TensorFlow
2.16 and later, add `tf-keras`, and set TF_USE_LEGACY_KERAS=1.
"""

import importlib
import threading
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from cluster.variables.masters import plain_name
from tests.cluster.recommend.tables import plain
from tests.support.training.alone import joined

pytestmark = pytest.mark.usefixtures("several_servers_in_one_process")
STEPS, BATCH, IDS, LENGTH, RATE = 3, 8, 9, 4, 0.1


def examples() -> Dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    history = random.randint(1, IDS, [BATCH, LENGTH])
    history[np.arange(LENGTH) >= random.randint(1, LENGTH + 1, [BATCH, 1])] = 0
    values = {"user": random.randint(1, IDS, [BATCH, 1]), "item": random.randint(1, IDS, [BATCH, 1])}
    price = random.uniform(-1, 1, [BATCH, 1]).astype(np.float32)
    return {**values, "hist_item": history, "price": price, "y": random.randint(0, 2, BATCH).astype(np.float32)}


def columns(library: Any, history: bool = False) -> List[Any]:
    """Two embeddings and a number, and with ``history`` a sequence of items."""
    of = library.feature_column
    first = {"embeddings_initializer": tf.keras.initializers.Constant(0.1), "embedding_dim": 4}
    found = [of.SparseFeat(name, IDS, dtype="int64", **first) for name in ("user", "item")]
    item = of.SparseFeat("hist_item", IDS, embedding_name="item", dtype="int64", **first)
    return [*found, of.DenseFeat("price", 1), *([of.VarLenSparseFeat(item, maxlen=LENGTH)] if history else [])]


def deepfm(library: Any, **more: Any) -> Any:
    settings = {"dnn_hidden_units": (6,), "l2_reg_linear": 0.0, "l2_reg_embedding": 0.0, **more}
    return library.models.DeepFM(columns(library), columns(library), **settings)


def dcn(library: Any) -> Any:
    settings = {"dnn_hidden_units": (6,), "l2_reg_linear": 0.0, "l2_reg_embedding": 0.0, "l2_reg_cross": 0.0}
    return library.models.DCN(columns(library), columns(library), **settings)


def din(library: Any) -> Any:
    settings = {"dnn_hidden_units": (6,), "att_hidden_size": (5,), "l2_reg_embedding": 0.0}
    return library.models.DIN(columns(library, history=True), ["item"], **settings)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """DeepCTR, which would look for a newer version of itself on the network as it is loaded."""
    with monkeypatch.context() as here:
        here.setattr(threading.Thread, "start", lambda thread: None)
        found = pytest.importorskip("deepctr", reason="needs DeepCTR: .venv/bin/pip install --no-deps deepctr==0.9.4")
    for name in ("inputs", "feature_column", "models"):
        importlib.import_module(f"deepctr.{name}")
    return found


def loss_of(make: Callable[[], Any], batch: Dict[str, Any], **more: Any) -> Any:
    """The loss of each example, of a model that DeepCTR makes."""
    given = dict(batch)
    y = given.pop("y")
    network = make()
    found = tf.clip_by_value(network([given[name] for name in network.input_names], **more)[:, 0], 1e-6, 1 - 1e-6)
    return -(y * tf.math.log(found) + (1 - y) * tf.math.log(1 - found))


class InOneProcess:
    """The same model with Keras's own embeddings, and the variables that training changes in one process."""

    def __init__(self, make: Callable[[], Any]):
        with tf.Graph().as_default() as self.graph:
            batch = {name: tf.constant(value) for name, value in examples().items()}
            loss = tf.reduce_mean(loss_of(make, batch, training=True))
            self._step = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
            self._variables = {each.op.name: each for each in tf.trainable_variables()}
            self._first = tf.global_variables_initializer()

    def train(self, dense: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
        """Return the values of all variables after training from these values of the dense ones."""
        assert set(self._variables) >= set(dense)
        with tf.Session(graph=self.graph) as session:
            session.run(self._first)
            for name, value in dense.items():
                self._variables[name].load(value, session)
            for _ in range(STEPS):
                session.run(self._step)
            found: Dict[str, np.ndarray] = session.run(self._variables)
            return found


@pytest.mark.nightly
@pytest.mark.parametrize("model", [deepfm, dcn, din])
def test_a_model_trains_as_in_one_process(model: Any, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Any:
        return model(library)

    alone = InOneProcess(make)
    monkeypatch.setattr(library.inputs, "Embedding", embedding.Embedding)
    job = Job(
        __file__,
        lambda task, args: tf.data.Dataset.from_tensors(examples()).repeat(),
        lambda **batch: loss_of(make, batch),
        lambda args: tf.train.GradientDescentOptimizer(RATE),
    )
    replica, session = joined(job, Train.from_dict({"batch_size": BATCH, "towers": 1}), {})
    trained = {plain_name(each): each for each in replica.of_model if "moving_" not in each.op.name}
    first = session.run(trained)
    for _ in range(STEPS):
        replica.stepper.step(session)
    expected, found = alone.train(first), session.run(trained)
    for each, value in found.items():
        assert (value != first[each]).any()
        np.testing.assert_allclose(value, expected[each], rtol=1e-4, atol=1e-6, err_msg=each)
    tables = plain.rows(replica, session)
    assert tables
    for table, of_table in tables.items():
        whole = expected[f"{table}/embeddings"]
        for identity, row in of_table.items():
            np.testing.assert_allclose(row, whole[identity], rtol=1e-4, atol=1e-6, err_msg=f"{table} {identity}")


@pytest.mark.nightly
def test_a_regularizer_that_would_read_the_whole_table_is_refused(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library.inputs, "Embedding", embedding.Embedding)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="'sparse_emb_user': expected no regularizer"):
        deepfm(library, l2_reg_embedding=1e-5)
