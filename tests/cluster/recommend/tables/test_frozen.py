"""Tables that answer and never change give the rows that they got, and first values for every other id."""

from typing import Any, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.recommend.tables.lookups import lookups
from cluster.recommend.tables.stored_tables import FrozenTables, joined
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import rows_from
from tests.cluster.recommend.tables import plain

ENDS = [-(1 << 63), -1, 0, 1, (1 << 63) - 1]
INITIALIZERS = [None, tf.random_uniform_initializer(-1.0, 1.0, seed=3), tf.constant_initializer(0.25)]


def drawn(seed: int, size: int, width: int) -> Dict[int, np.ndarray]:
    """Rows of so many ids, the ends of 64 bits among them."""
    random = np.random.RandomState(seed)
    ids = [*ENDS[: seed % 6], *random.randint(-(1 << 62), 1 << 62, size)][:size]
    return {int(each): random.normal(size=width).astype(np.float32) for each in random.permutation(ids)}


@pytest.mark.parametrize("seed", range(12))
def test_ids_get_their_rows_and_others_their_first_values(seed: int) -> None:
    width, size, pieces = 1 + seed % 3, [0, 1, 7, 100][seed % 4], 1 + seed % 5
    table = embedding.table(f"t/{seed}", width, initializer=INITIALIZERS[seed % 3])
    random, rows = np.random.RandomState(seed), drawn(seed, size, width)
    asked = np.array([*ENDS, *rows, *rows, *random.randint(-(1 << 63), 1 << 62, 9)])[: None if seed else 0]
    with tf.Graph().as_default(), tf.Session() as session:
        tables = FrozenTables("/device:CPU:0", lambda table: pieces)
        with rows_from(tables.look_up):
            ids = tf.placeholder(tf.int64, [None])
            found = embedding.lookup(table, ids)
        (frozen,) = tables.all.values()
        frozen.load(session, np.array([0], np.int64), [np.ones([1, width], np.float32)])  # which the next replaces
        parts: List[Any] = np.array_split(np.array([*rows.values()], np.float32).reshape([-1, width]), 3)
        frozen.load(session, np.array([*rows], np.int64), parts)
        values = session.run(found, {ids: asked})
    expected = [
        rows.get(int(each), plain.first_row_of(table.name, width, table.initializer, int(each))) for each in asked
    ]
    np.testing.assert_allclose(values, np.reshape(np.array(expected, np.float32), [-1, width]), atol=1e-6)
    assert values.shape == (len(asked), width)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_any_length_are_joined_to_arrays_of_the_lengths_that_are_wanted(seed: int) -> None:
    random = np.random.RandomState(seed)
    rows = random.normal(size=[random.randint(0, 50), 2]).astype(np.float32)
    parts = np.array_split(rows, sorted(random.randint(0, len(rows) + 1, 4)))
    cuts = sorted(random.randint(0, len(rows) + 1, 3))
    sizes = np.diff([0, *cuts, len(rows)]).tolist()
    found = list(joined(parts, sizes, 2))
    assert [len(each) for each in found] == sizes
    np.testing.assert_array_equal(np.concatenate(found), rows)


def test_lookups_outside_take_no_rows_from_a_source() -> None:
    with tf.Graph().as_default() as graph:
        with rows_from(lambda table, ids: tf.zeros([tf.size(ids), table.width])):
            embedding.lookup(embedding.table("a", 2), [1])
        assert not lookups(graph) and not tf.global_variables()
        embedding.lookup(embedding.table("a", 2), [1])
        assert len(lookups(graph)) == 1
        with pytest.raises(ValueError, match="expected one table of this name"):
            embedding.lookup(embedding.table("a", 3), [1])
