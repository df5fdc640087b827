"""Rows of tables come under other names, on other servers, with nothing but their values."""

import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import numpy as np
import pytest

from cluster import embedding
from cluster.checkpoints.finished_files import open_reader
from cluster.checkpoints.pieces_of_variables import Fed
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.errors import TrainingError
from cluster.recommend.tables import row_keys, splitmix
from cluster.recommend.tables.loaded_rows import WarmTables
from cluster.recommend.tables.row_optimizers import slots_of
from cluster.recommend.tables.saved_tables import SavedTables
from cluster.recommend.tables.store import Store
from cluster.runtime.tf_compat import tf
from tests.cluster.checkpoints.test_deltas import HERE, WIDTH, Model, content, drawn
from tests.support.nightly import few

TABLES, FIRST_SLOT = ("left", "right", "cold"), 0.5


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.02)


class New:
    """Tables of a new run on some servers, whose ids get a row at their fifth step, and lose it after three without."""

    def __init__(self, servers: int):
        rules: Dict[str, Any] = {"admit": embedding.after(5), "expire": embedding.unused_for(steps=3)}
        tables = [embedding.table(name, WIDTH, **rules) for name in TABLES]
        with tf.Graph().as_default() as graph, tf.container(uuid.uuid4().hex):
            optimizer = tf.train.AdagradOptimizer(0.5, initial_accumulator_value=FIRST_SLOT)
            made = [Store(f"new_{each}", HERE, tables, slots_of(optimizer)) for each in range(servers)]
            self.fed, self.rows = Fed.make(), WarmTables([made])
            self.rows.make_loads(self.fed)
            self.saver = StreamedSaver([], HERE, 1 << 20, lambda fed: [SavedTables(f"embeddings_{WIDTH}", made, fed)])
            self.next_step = [tf.assign_add(store.updates, 1) for store in made]
            self.keys, of = tf.placeholder(tf.int64, [None]), tf.zeros([1], tf.int32)
            self.answers = [store.find(self.keys, of, False) for store in made]
            first = [store.first() for store in made]
        self.servers, self.session = servers, tf.Session(graph=graph)
        self.session.run(first)

    def warm(self, path: str, sources: Dict[str, str]) -> int:
        for operation, feed in self.rows.loads(open_reader(path), sources):
            self.session.run(operation, {**feed, self.fed.path: path})
        return self.rows.size(self.session)

    def find(self, table: str, identity: int) -> bytes:
        """What a lookup in ``left`` answers, on the server that its key belongs to."""
        with tf.Graph().as_default(), tf.Session() as session:
            key = row_keys.mix(tf.constant([identity], tf.int64) + splitmix.salt(table))
            key, owner = session.run([key, row_keys.owners(key, self.servers)])
        answer: np.ndarray = self.session.run(self.answers[owner[0]], {self.keys: key})
        return bytes(answer.tobytes())


@pytest.mark.parametrize("seed", few(range(3), [1]))
def test_rows_that_had_not_expired_come_with_their_bits_and_nothing_else(seed: int, tmp_path: Path) -> None:
    random = np.random.RandomState(seed)
    old = Model(1, [0, 3, 5][seed % 3], int(random.choice([400, 1 << 20])))
    for number in range(5):
        for _ in range(random.randint(1, 4)):
            old.train(*drawn(random, 30, 40), random)
        path = str(tmp_path / f"model-{number}")
        old.saver.save(old.session, path, is_delta=number > 0)
    old.whole.save(old.session, str(tmp_path / "whole"))
    expected = content(str(tmp_path / "whole"))
    sources = [{"left": "ruled", "right": "plain"}, {"left": "ruled", "right": "ruled"}, {"left": "plain"}][seed % 3]
    new = New(1 + int(random.randint(3)))
    size = new.warm(path, sources)
    new.saver.save(new.session, str(tmp_path / "new"))
    found = content(str(tmp_path / "new"))
    slots = np.full(WIDTH, FIRST_SLOT, np.float32).tobytes()
    rows = {(name, each): (0, row, slots) for name, table in sources.items()
            for (of, each), (_, row, _) in expected.items() if of == table}  # fmt: skip
    assert found == rows and size == len(rows) > 0
    identity = next(each for name, each in rows if name == "left")
    assert new.find("left", identity) == rows["left", identity][1]
    for _ in range(2):
        new.session.run(new.next_step)
    new.saver.save(new.session, str(tmp_path / "later"))
    assert set(content(str(tmp_path / "later"))) == set(rows)
    new.session.run(new.next_step)  # the next update is the fourth without them
    new.saver.save(new.session, str(tmp_path / "last"))
    assert content(str(tmp_path / "last")) == {}
    assert new.find("left", identity) != rows["left", identity][1]


def test_a_warm_start_into_a_table_with_a_bound_is_refused_by_name() -> None:
    tables = [embedding.table("free", WIDTH), embedding.table("bound", WIDTH, expire=embedding.at_most(5))]
    warm = WarmTables([[SimpleNamespace(all_tables=tables)]])  # type: ignore[list-item]
    with pytest.raises(TrainingError, match=r"without embedding\.at_most, found 'bound'"):
        next(warm.loads(None, {"free": "free", "bound": "bound"}))
