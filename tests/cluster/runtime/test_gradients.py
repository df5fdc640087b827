"""Rows of a sparse gradient are merged once."""

from typing import Any

import numpy as np

from cluster.runtime.gradients import merge_rows
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
