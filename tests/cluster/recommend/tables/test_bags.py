"""Weights, the largest row and sequences train the rows of tables as by hand, on one ps and on three."""

from typing import Any, Dict

import numpy as np
import pytest

from cluster import embedding
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from tests.cluster.recommend.tables import plain
from tests.support.training.alone import joined

pytestmark = pytest.mark.usefixtures("several_servers_in_one_process")
STEPS, BATCH, MOST, WIDTH, RATE = 4, 8, 5, 3, 0.3
NONE = -1  # the padding
WAYS = ("dense", "ragged", "sparse", "largest", "sequence")  # a table each


def batch() -> Dict[str, np.ndarray]:
    """Examples with up to five ids; one has none, and some have an id twice."""
    random = np.random.RandomState(3)
    ids = random.randint(0, 12, [BATCH, MOST])
    ids[np.arange(MOST) >= random.randint(1, MOST + 1, [BATCH, 1])] = NONE
    ids[2] = NONE
    return {"ids": ids.astype(np.int64), "weights": random.uniform(0.5, 2.0, ids.shape).astype(np.float32)}


def lengths(ids: Any) -> Any:
    return tf.reduce_sum(tf.cast(tf.not_equal(ids, NONE), tf.int64), 1)


def ragged(values: Any, ids: Any) -> Any:
    return tf.RaggedTensor.from_tensor(values, lengths=lengths(ids))


def sparse(values: Any, ids: Any) -> Any:
    places = tf.where(tf.not_equal(ids, NONE))
    return tf.SparseTensor(places, tf.gather_nd(values, places), tf.shape(ids, out_type=tf.int64))


def model(ids: Any, weights: Any) -> Any:
    tables = {way: embedding.table(way, WIDTH, initializer=tf.random_uniform_initializer(-1, 1)) for way in WAYS}
    found = [
        embedding.lookup(tables["dense"], ids, "mean", weights=weights, padding=NONE),
        embedding.lookup(tables["ragged"], ragged(ids, ids), "sqrtn", weights=ragged(weights, ids)),
        embedding.lookup(tables["sparse"], sparse(ids, ids), "sum", weights=sparse(weights, ids)),
        embedding.lookup(tables["largest"], ids, "max", padding=NONE),
    ]
    sequence = embedding.lookup(tables["sequence"], ragged(ids, ids)).to_tensor()
    squares = [tf.reduce_sum(tf.square(each), 1) for each in found] + [tf.reduce_sum(tf.square(sequence), [1, 2])]
    return tf.add_n(squares) / 2


def by_hand() -> Dict[str, Dict[int, np.ndarray]]:
    """The rows after so many steps of gradient descent, along the mean of the examples' gradients."""
    data = batch()
    first = {
        way: np.array([plain.first_row_of(way, WIDTH, ("uniform", -1.0, 1.0, 0), each) for each in range(12)])
        for way in WAYS
    }
    for _ in range(STEPS):
        grads = {way: np.zeros_like(values) for way, values in first.items()}
        for ids, weights in zip(data["ids"], data["weights"]):
            has = ids != NONE
            _add_gradients(first, grads, ids[has], weights[has].astype(float))
        for way, grad in grads.items():
            first[way] -= RATE / BATCH * grad
    used = np.unique(data["ids"][data["ids"] != NONE])
    return {way: {int(each): first[way][each] for each in used} for way in WAYS}


def _add_gradients(rows: Dict[str, Any], grads: Dict[str, Any], ids: np.ndarray, weights: np.ndarray) -> None:
    if not len(ids):
        return
    parts = {"dense": weights / weights.sum(), "ragged": weights / np.sqrt((weights**2).sum()), "sparse": weights}
    for way, part in parts.items():
        np.add.at(grads[way], ids, part[:, None] * (part[:, None] * rows[way][ids]).sum(0))
    np.add.at(grads["sequence"], ids, rows["sequence"][ids])
    given = rows["largest"][ids]
    for column in range(WIDTH):
        are_largest = given[:, column] == given[:, column].max()
        share = given[:, column].max() * are_largest / are_largest.sum()
        np.add.at(grads["largest"], (ids, column), share)


@pytest.mark.parametrize(("ps", "settings"), [(3, {"towers": 2}), (1, {"mode": "async"})], ids=str)
def test_they_train_as_by_hand(ps: int, settings: Dict[str, Any]) -> None:
    def data(task: Any, args: Any) -> Any:
        return tf.data.Dataset.from_tensors(batch()).repeat()

    towers: int = settings.get("towers", 1)
    train = Train.from_dict({"batch_size": BATCH // towers, **settings, "towers": towers})
    job = Job(__file__, data, model, lambda args: tf.train.GradientDescentOptimizer(RATE))
    replica, session = joined(job, train, {}, ps)
    for _ in range(STEPS):
        replica.stepper.step(session)
    found, expected = plain.rows(replica, session), by_hand()
    for way in WAYS:
        assert set(found[way]) == set(expected[way])  # the padding has no row
        for each, row in found[way].items():
            np.testing.assert_allclose(row, expected[way][each], rtol=1e-4, atol=1e-5, err_msg=f"{way} {each}")
