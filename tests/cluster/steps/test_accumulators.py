"""Sparse gradients of several workers meet as dense ones would."""

from typing import Any, Iterator, List, Tuple

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Accumulator
from cluster.steps.exchange import Exchange, plain_push
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire

ROWS = 5
GRADIENTS: List[Tuple[List[int], List[float]]] = [
    ([0, 3, 0], [1.0, 2.0, 3.0]),
    ([3], [10.0]),
    ([], []),
]  # rows, and what each adds


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def sparse(rows: List[int], values: List[float]) -> Any:
    by_row = tf.reshape(tf.constant(values, tf.float32), [-1, 1]) * tf.ones([1, 2])
    return tf.IndexedSlices(by_row, tf.constant(rows, tf.int64), tf.constant([ROWS, 2], tf.int64))


def total(number: int) -> np.ndarray:
    found = np.zeros([ROWS, 2])
    for rows, values in GRADIENTS[:number]:
        np.add.at(found, np.array(rows, int), np.reshape(values, [-1, 1]))
    return found


@pytest.mark.parametrize(("required", "given"), [(1, 1), (2, 2), (3, 3), (2, 3)])
@pytest.mark.parametrize("is_exact", [True, False])
def test_gradients_are_added_up_and_their_mean_is_over_all_that_are_given_where_fewer_would_do(
    session: Any, required: int, given: int, is_exact: bool
) -> None:
    table = tf.get_variable("table", [ROWS, 2])
    exchange = Exchange(LocalCopies([], {}, ""), Wire())
    accumulators = Accumulator(plain_push(sparse([0], [0.0]), table), required, exchange, is_exact)
    give = [accumulators.give(sparse(*gradient), 0) for gradient in GRADIENTS[:given]]
    taken = accumulators.take()
    for _ in range(2):  # empty again after a step
        session.run(accumulators.set_step(0))
        session.run(give)
        assert session.run(accumulators.waiting()) == given
        value = session.run(taken)
        assert sorted(value.indices) == list(value.indices) and max(value.indices, default=0) < ROWS
        found = np.zeros([ROWS, 2])
        found[value.indices.astype(int)] = value.values
        np.testing.assert_allclose(found, total(given) * (1 if is_exact else required / given))
