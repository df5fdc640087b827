"""First values of rows are those of Python's own numbers, alone and in any batch, and have the asked distribution."""

from typing import Any, List

import numpy as np
import pytest

from cluster.embedding import Table
from cluster.recommend.tables.initializers import first_values
from cluster.recommend.tables.splitmix import signed
from cluster.runtime.tf_compat import tf
from tests.cluster.recommend.tables import plain

WIDTH = 5
TABLES = [
    Table("zeros", WIDTH, ("constant", 0.0, 0.0, 0)),
    Table("two", WIDTH, ("constant", 2.0, 0.0, 0)),
    Table("even", WIDTH, ("uniform", -0.5, 3.0, 0)),
    Table("seeded", WIDTH, ("uniform", -0.5, 3.0, 9)),
    Table("bell", WIDTH, ("normal", 1.0, 0.25, 0)),
]


def values(tables: List[Table], names: List[int], ids: List[int]) -> np.ndarray:
    found = [signed(plain.key(tables[table].name, each)) for table, each in zip(names, ids)]
    with tf.Graph().as_default(), tf.Session() as session:
        rows: Any = first_values(tables, tf.constant(found, tf.int64), tf.constant(names, tf.int32))
        assert rows.shape.as_list() == [len(ids), tables[0].width]
        return np.asarray(session.run(rows))


@pytest.mark.parametrize("tables", [TABLES, TABLES[:2], TABLES[2:4], TABLES[4:], TABLES[::-2]], ids=str)
def test_rows_of_any_batch_are_those_of_whole_numbers(tables: List[Table]) -> None:
    random = np.random.RandomState(len(tables))
    names = random.randint(0, len(tables), 50).tolist()
    ids = random.randint(-(1 << 63), (1 << 63) - 1, 50, np.int64).tolist()
    found = values(tables, names, ids)
    expected = [plain.first_row_of(tables[table].name, WIDTH, tables[table].initializer, each)
                for table, each in zip(names, ids)]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    for first, last in ((0, 1), (7, 8), (3, 20)):  # bit for bit
        np.testing.assert_array_equal(found[first:last], values(tables, names[first:last], ids[first:last]))
    kept = tables[names[7]]  # the other tables of the store do not matter either
    np.testing.assert_array_equal(found[7:8], values([kept], [0], ids[7:8]))


@pytest.mark.parametrize("table, mean, deviation, low, high", [
    (TABLES[2], 1.25, 3.5 / 12**0.5, -0.5, 3.0), (TABLES[4], 1.0, 0.25, 1 - 3.5 * 0.25, 1 + 3.5 * 0.25)
])  # fmt: skip
def test_mean_and_deviation(table: Table, mean: float, deviation: float, low: float, high: float) -> None:
    number = 20000
    found = values([table], [0] * number, list(range(number)))
    assert np.all(np.abs(found.mean(0) - mean) < 5 * deviation / number**0.5)
    assert np.all(np.abs(found.std(0) / deviation - 1) < 5 / number**0.5)
    assert low <= found.min() and found.max() <= high
    together = np.corrcoef(np.concatenate([found[:-1], found[1:]], 1).T)  # columns, and ids that follow one another
    assert np.abs(together - np.eye(2 * WIDTH)).max() < 6 / number**0.5


def test_no_rows() -> None:
    assert values(TABLES, [], []).shape == (0, WIDTH)


def test_seeds_and_names_give_other_rows() -> None:
    found = {values([Table(name, 2, ("uniform", 0.0, 1.0, seed))], [0], [7]).tobytes()
             for name in ("a", "b") for seed in (0, 1)}  # fmt: skip
    assert len(found) == 4
