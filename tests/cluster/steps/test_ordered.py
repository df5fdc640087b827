"""Gradients are added in the order of the workers, whoever comes first."""

import itertools
from typing import Any, Iterator, List, Sequence

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Separate
from cluster.steps.exchange import Exchange, plain_push
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire

ROWS = 5
PARTS = [1e8, 1.0, -1e8]  # in float32 (1e8 + 1) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def meeting(grads: Sequence[Any], variable: Any) -> List[Any]:
    """What each worker gives its gradient to; the chief, worker 0, has everybody's accumulators."""
    receivers = [list(range(len(grads))), *([worker] for worker in range(1, len(grads)))]
    exchange = Exchange(LocalCopies([], {}, ""), Wire(), in_order=True)
    return [
        Separate(plain_push(grad, variable), worker, receivers[worker], exchange) for worker, grad in enumerate(grads)
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_sum_is_that_of_the_workers_in_order(session: Any, order: Sequence[int]) -> None:
    grads = [tf.fill([2], part) for part in PARTS]
    workers = meeting(grads, tf.get_variable("w", [2]))
    give = [worker.give(grad, 0) for worker, grad in zip(workers, grads)]
    taken = workers[0].take()
    for index in order:
        session.run(give[index])
    np.testing.assert_array_equal(session.run(taken), [0, 0])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_each_row_is_added_in_that_order_too(session: Any, order: Sequence[int]) -> None:
    grads = [
        tf.IndexedSlices(tf.fill([2, 2], part), tf.constant([3, worker], tf.int64), tf.constant([ROWS, 2], tf.int64))
        for worker, part in enumerate(PARTS)
    ]
    workers = meeting(grads, tf.get_variable("table", [ROWS, 2]))
    give = [worker.give(grad, 0) for worker, grad in zip(workers, grads)]
    taken = tf.convert_to_tensor(workers[0].take())
    for index in order:
        session.run(give[index])
    np.testing.assert_array_equal(session.run(taken)[:, 0], np.float32([1e8, 1, -1e8, 0, 0]))


def test_a_row_that_a_worker_names_twice_is_added_up_first(session: Any) -> None:
    grad = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 1]), tf.constant([ROWS, 2], tf.int64))
    (only,) = meeting([grad], tf.get_variable("table", [ROWS, 2]))
    give, taken = only.give(grad, 0), only.take()
    session.run(give)
    found = session.run(taken)
    assert (found.indices.tolist(), found.values.tolist()) == ([1], [[2, 2]])


@pytest.mark.parametrize("sparse", [False, True])
def test_what_waits_is_counted_and_dropped(session: Any, sparse: bool) -> None:
    dense = tf.ones([ROWS, 2])
    grad = tf.IndexedSlices(dense, tf.range(ROWS), tf.constant([ROWS, 2], tf.int64)) if sparse else dense
    workers = meeting([grad, grad], tf.get_variable("w", [ROWS, 2]))
    give, (_, of_other) = workers[1].give(grad, 0), workers[0].parts
    waiting, discard = [part.waiting() for part in workers[0].parts], of_other.discard()
    session.run([give])
    session.run([give])
    assert session.run(waiting) == [0, 2]
    session.run(discard)
    assert session.run(waiting) == [0, 0]
