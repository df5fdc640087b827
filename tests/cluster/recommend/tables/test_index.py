"""The index of a store against a dictionary, whether its keys stay or go."""

from typing import Any, Dict, Iterator

import numpy as np
import pytest

from cluster.recommend.tables.row_places import NO_ROW, Index
from cluster.runtime.tf_compat import tf
from tests.cluster.recommend.tables import plain


class Indexed:
    """An index in a session of this process."""

    def __init__(self, removes: bool):
        self._keys, self._places = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
        with tf.device("/cpu:0"):
            index = Index("some", removes)
            self._find, self._insert = index.find(self._keys), index.insert(self._keys, self._places)
            self._remove, self._empty = index.remove(self._keys) if removes else None, index.empty()
        self._session = tf.Session()
        self._session.run(self._empty)

    def find(self, keys: Any) -> np.ndarray:
        return np.asarray(self._session.run(self._find, {self._keys: keys}))

    def insert(self, keys: Any, places: Any) -> None:
        self._session.run(self._insert, {self._keys: keys, self._places: places})

    def remove(self, keys: Any) -> None:
        self._session.run(self._remove, {self._keys: keys})

    def empty(self) -> None:
        self._session.run(self._empty)


@pytest.fixture
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


MARKS = [plain.key("t", each) for each in plain.marks("t")]  # keys that TensorFlow's dense table takes from nobody


def drawn_keys(random: np.random.RandomState, number: int) -> np.ndarray:
    """Any keys, and mostly one of the marks or both."""
    drawn = random.randint(-(1 << 63), 1 << 62, number, dtype=np.int64) * 2 + random.randint(0, 2, number)
    return np.concatenate([drawn, random.permutation(MARKS)[: random.randint(0, 3)]])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.usefixtures("graph")
def test_keys_lead_to_their_places_until_they_are_removed(removes: bool, seed: int) -> None:
    random, index = np.random.RandomState(seed), Indexed(removes)
    expected: Dict[int, int] = {}
    for _ in range(12):
        new = drawn_keys(random, random.randint(0, 3000))  # more in all than the first entries
        places = random.randint(0, 1 << 30, len(new))
        index.insert(new, places)
        expected.update(zip(new.tolist(), places.tolist()))
        if removes and expected:
            gone = random.permutation(list(expected))[: random.randint(0, len(expected))]
            index.remove(gone)
            for key in gone.tolist():
                del expected[key]
        asked = np.concatenate([random.permutation(np.array([*expected, 0], np.int64)), drawn_keys(random, 50)])
        np.testing.assert_array_equal(index.find(asked), [expected.get(key, NO_ROW) for key in asked.tolist()])


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.usefixtures("graph")
def test_an_index_that_was_emptied_has_no_key_and_takes_others(removes: bool) -> None:
    random, index = np.random.RandomState(0), Indexed(removes)
    for size in (10, 20_000, 5):
        keys = np.unique([*drawn_keys(random, size), *MARKS])
        index.insert(keys, np.arange(len(keys)))
        np.testing.assert_array_equal(index.find(keys), np.arange(len(keys)))
        index.empty()
        assert set(index.find(keys).tolist()) == {NO_ROW}


@pytest.mark.usefixtures("graph")
def test_a_step_that_began_before_the_index_was_emptied_goes_on_with_the_empty_one() -> None:
    with tf.device("/cpu:0"):
        index, keys = Index("some", removes=False), tf.constant([1, *MARKS], tf.int64)
        inserted = index.insert(keys, keys)
        with tf.control_dependencies([index.empty()]):
            found = index.find(tf.identity(keys))
    with tf.Session() as session:
        session.run(inserted)
        assert session.run(found).tolist() == [NO_ROW] * 3
