"""Rows of a sparse gradient are merged once; gradients of any types have a norm together."""

from typing import Any, List

import numpy as np
import pytest

from cluster.runtime.gradients import clip, global_norm, merge_rows
from cluster.runtime.tf_compat import tf


def test_merged_rows_are_in_order_each_once_and_are_not_merged_again() -> None:
    random = np.random.RandomState(0)
    for _ in range(10):
        rows, values = random.randint(0, 9, 20), random.normal(size=[20, 3]).astype(np.float32)
        expected = np.zeros([9, 3])
        np.add.at(expected, rows, values)
        with tf.Graph().as_default() as graph, tf.Session() as session:
            merged = merge_rows(tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([9, 3])))
            operations = len(graph.get_operations())
            again: Any = merge_rows(merged)
            assert again is merged and len(graph.get_operations()) == operations
            found = session.run(merged)
        assert found.indices.tolist() == sorted(set(rows))
        np.testing.assert_allclose(found.values, expected[found.indices], rtol=1e-5, atol=1e-6)


def gradients(types: List[str]) -> List[Any]:
    """A dense gradient of each type, one of rows, and one of a variable without any."""
    dense = [tf.constant([3.0, 4.0], each) for each in types]
    rows = tf.IndexedSlices(tf.constant([[12.0]], types[0]), tf.constant([1]), tf.constant([2, 1]))
    return [*dense, rows, None]


def norm_of(types: List[str]) -> float:
    return float((len(types) * 25.0 + 144.0) ** 0.5)


@pytest.mark.parametrize(
    "types",
    [["float32"], ["float32", "float64"], ["float16", "float32"], ["complex64"], ["complex128", "float32"]],
    ids=str,
)
def test_gradients_of_any_types_have_one_norm_to_which_they_are_clipped(types: List[str]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        grads = gradients(types)
        clipped = [grad for grad, _ in clip([(grad, None) for grad in grads], 2.0)]
        assert clipped.pop() is grads.pop() is None
        assert [each.dtype for each in clipped] == [each.dtype for each in grads]
        found = session.run([global_norm(grads), *clipped])
        unchanged = session.run([grad for grad, _ in clip([(grad, None) for grad in grads], 100.0)])
    assert found[0] == pytest.approx(norm_of(types))
    assert found[-1].values[0, 0] == pytest.approx(12 * 2.0 / norm_of(types), rel=1e-3)
    np.testing.assert_allclose(found[1], np.array([3, 4]) * 2.0 / norm_of(types), rtol=1e-3)
    assert unchanged[0].tolist() == [3, 4]


def test_gradients_of_several_types_whose_norm_is_no_finite_number_are_clipped_to_none() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        grads = [tf.constant([float("inf")]), tf.constant([1.0], tf.float64)]
        clipped = session.run([grad for grad, _ in clip([(grad, None) for grad in grads], 2.0)])
    assert np.isnan(clipped).all()
