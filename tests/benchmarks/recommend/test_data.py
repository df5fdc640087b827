"""The examples that all systems read."""

from pathlib import Path
from typing import Any, List

import numpy as np
import tensorflow.compat.v1 as tf

from tests.benchmarks.recommend import data
from tests.benchmarks.recommend.area import area


def test_ranks_follow_zipfs_law() -> None:
    ranks = data.zipf(np.random.RandomState(0).uniform(size=400_000))
    chances = 1 / np.arange(1, data.IDS + 1.0) ** data.EXPONENT
    chances /= chances.sum()
    for begin, end in ((0, 1), (1, 4), (10, 100), (1000, 100_000), (100_000, data.IDS)):
        share = ((ranks >= begin) & (ranks < end)).mean()
        assert abs(share - chances[begin:end].sum()) < 0.03, (begin, end)
    assert ranks.min() == 0 and ranks.max() < data.IDS


def test_every_rank_of_every_column_has_an_id_of_its_own() -> None:
    ranks = np.tile(np.arange(5000)[:, None], (1, data.COLUMNS))
    ids = data.scrambled(ranks)
    assert len(np.unique(ids)) == ids.size and ids.min() >= 0


def test_labels_follow_the_odds() -> None:
    random = np.random.RandomState(3)
    ranks, numbers = data.zipf(random.uniform(size=[20000, data.COLUMNS])), random.normal(size=[20000, data.NUMBERS])
    odds = data.logits(ranks, numbers)
    labels = random.uniform(size=20000) < 1 / (1 + np.exp(-odds))
    assert 0.75 < area(labels, odds) < 0.95 and 0.1 < labels.mean() < 0.5


def test_workers_read_what_was_made_each_its_share_and_one_process_all_of_it(tmp_path: Path) -> None:
    path = str(data.write(tmp_path / "data", 4, 8, seed=5))
    made = [data.examples(8, 5 + record) for record in range(4)]
    second = _read(data.batches(tf, path, 8, 1, 2), 2)
    joined = _read(data.joined(tf, path, 8, 2), 2)
    for step in range(2):
        for name, own, first in zip(("label", "numbers", "categories"), made[2 * step + 1], made[2 * step]):
            np.testing.assert_array_equal(second[step][name], own)
            np.testing.assert_array_equal(joined[step][name], np.concatenate([first, own]))


def _read(dataset: tf.data.Dataset, number: int) -> List[Any]:
    with tf.Session() as session:
        batch = tf.data.make_one_shot_iterator(dataset).get_next()
        return [session.run(batch) for _ in range(number)]
