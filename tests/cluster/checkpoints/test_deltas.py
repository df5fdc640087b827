"""Checkpoints that write only changed rows, beside whole ones of the same moment."""

import os
import uuid
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster import embedding
from cluster.checkpoints.pieces_of_variables import Fed
from cluster.checkpoints.saver import Checkpoints
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.protocol.checkpoint_files import ROWS, remove_unfinished
from cluster.recommend.tables import row_keys, splitmix
from cluster.recommend.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.recommend.tables.saved_tables import SavedTables
from cluster.recommend.tables.store import Store
from cluster.recommend.tables.stored_tables import StoredRows, stored_tables
from cluster.runtime.tf_compat import tf
from cluster.task import Checkpoint
from tests.cluster.recommend.tables import plain
from tests.support.nightly import few

WIDTH, SERVERS, HERE = 4, 2, "/cpu:0"
Content = Dict[Tuple[str, int], Tuple[Any, ...]]  # (used, row, slots) of each (table, id)


class Model:
    """Two tables on two servers, in a session of this process. ``admit``, ``expire``: the rules of the second.

    A negative ``expire`` is a bound of rows; ``rule`` is any rule in its place.
    """

    def __init__(
        self, admit: int = 1, expire: int = 0, piece_bytes: int = 1 << 20, deltas: bool = True, rule: Any = None
    ):
        limit = embedding.at_most(-expire) if expire < 0 else embedding.unused_for(steps=expire or 1)
        rules: Dict[str, Any] = {"admit": embedding.after(admit) if admit > 1 else None,
                                 "expire": limit if expire else rule}  # fmt: skip
        self.tables = [embedding.table("plain", WIDTH), embedding.table("ruled", WIDTH, **rules)]
        optimizer = tf.train.AdagradOptimizer(0.5)
        with tf.Graph().as_default() as graph, tf.container(uuid.uuid4().hex):
            made = [
                Store(f"part_{each}", HERE, self.tables, slots_of(optimizer), servers=SERVERS)
                for each in range(SERVERS)
            ]
            self.ids, self.of = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [None])
            self.grads = tf.placeholder(tf.float32, [None, WIDTH])
            salts = tf.constant([splitmix.salt(each.name) for each in self.tables], tf.int64)
            mixed = row_keys.mix(self.ids + tf.gather(salts, self.of))
            owner = row_keys.owners(mixed, SERVERS)
            shares = [tf.dynamic_partition(each, owner, SERVERS) for each in (mixed, self.of, self.grads)]
            self._find = [store.find(own, of, True) for store, own, of in zip(made, *shares[:2])]
            rows = [RowOptimizer(rule_of(optimizer), [store], {}) for store in made]
            pairs = [tf.IndexedSlices(grads, own) for own, grads in zip(shares[0], shares[2])]
            self._update = [each.apply_gradients([(pair, store.rows)])
                            for each, pair, store in zip(rows, pairs, made)]  # fmt: skip
            self.first = [store.first() for store in made]
            self.stores = made
            self.step = tf.train.get_or_create_global_step()
            self.saver = StreamedSaver([], HERE, piece_bytes, self.rows, deltas)
            self.whole = StreamedSaver([], HERE, piece_bytes, self.rows)
        self.session = tf.Session(graph=graph)
        self.session.run([self.first, self.step.initializer])

    def rows(self, fed: Fed) -> List[SavedTables]:
        return [SavedTables(f"embeddings_{WIDTH}", self.stores, fed)]

    def train(self, ids: np.ndarray, of: np.ndarray, random: Any) -> None:
        """Makes a step with distinct pairs of id and table."""
        feed = {self.ids: ids, self.of: of, self.grads: random.normal(size=[len(ids), WIDTH])}
        self.session.run(self._find, feed)
        self.session.run(self._update, feed)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.02)
    monkeypatch.setattr("cluster.recommend.tables.store.CANDIDATES", 12)
    monkeypatch.setattr("cluster.recommend.tables.store._FRESH", 12)


def content(path: str, expire: int = 0) -> Content:
    """All rows of a checkpoint, as docs/embeddings.md says how to read them."""
    reader, found, kind = tf.train.load_checkpoint(path), {}, f"embeddings_{WIDTH}"
    names, updates = reader.get_tensor(f"{kind}/tables"), reader.get_tensor(f"{kind}/updates")
    parts = range(reader.get_tensor(f"{kind}/parts"))
    floors: Dict[Any, int] = {}
    for part in parts:
        if reader.has_tensor(f"{kind}/floors"):
            of_part = reader.get_tensor(f"{kind}/floors")[reader.get_tensor(f"{kind}/owners")[part]]
            floors.update({(part, number): int(floor) for number, floor in enumerate(of_part)})
    for part in parts:
        columns = (
            reader.get_tensor(f"{kind}/part_{part}/{each}") for each in ("ids", "tables", "used", "rows", "slots")
        )
        for identity, table, used, row, slots in zip(*columns):
            of_id = (names[table].decode(), int(identity))
            found[of_id] = (int(used), row.tobytes(), slots.tobytes())
            if used < floors.get((part, int(table)), 0):
                del found[of_id]
    return {(table, each): row for (table, each), row in found.items()
            if table != "ruled" or expire <= 0 or updates + 1 - row[0] <= expire}  # fmt: skip


def counted(path: str) -> Any:
    reader, kind = tf.train.load_checkpoint(path), f"embeddings_{WIDTH}"
    parts = range(reader.get_tensor(f"{kind}/seen")) if reader.has_tensor(f"{kind}/seen") else []
    columns = (
        [reader.get_tensor(f"{kind}/seen_{part}/{each}").tolist() for each in ("ids", "tables", "counts")]
        for part in parts
    )
    # An id that is there twice has the count of its last entry, as a table has it that is written in order.
    counts = {(table, each): count for some in columns for each, table, count in zip(*some)}
    return counts, reader.get_tensor(f"{kind}/updates")


def rows_in(path: str, table: embedding.Table) -> Dict[int, bytes]:
    """What an evaluator or an export reads."""
    reader = tf.train.load_checkpoint(path)
    rows = StoredRows(reader, stored_tables(reader)[table.name], table.expire)
    values = np.concatenate([np.zeros([0, WIDTH], np.float32), *rows.parts()])
    assert len(set(rows.ids)) == len(rows.ids) == len(values)
    return dict(zip(rows.in_parts.tolist(), (each.tobytes() for each in values)))


def drawn(random: Any, number: int, most: int) -> Tuple[np.ndarray, np.ndarray]:
    """Ids and their tables, each pair once; 0 and 1 are those of the first table that a hash table refuses."""
    pairs = np.unique(np.stack([random.zipf(1.2, number) % most, random.randint(0, 2, number)], 1), axis=0)
    ids = [plain.marks("plain")[each] if each < 2 and not table else each for each, table in pairs.tolist()]
    return np.array(ids, np.int64), pairs[:, 1].astype(np.int32)


@pytest.mark.parametrize(
    ("seed", "deltas"), few([(0, 20), (1, 20), (4, 20), (8, 7), (9, 20), (10, 7)], [(8, 7), (10, 7)])
)
def test_a_base_and_its_deltas_are_a_whole_checkpoint_to_the_bit(seed: int, deltas: int, tmp_path: Path) -> None:
    random = np.random.RandomState(seed)
    admit, expire = int(random.randint(1, 4)), int(random.choice([0, 3, 8, -10, -16]))
    model, piece = Model(admit, expire, int(random.choice([400, 1 << 20]))), "model-{}"
    again = Model(admit, expire)
    for number in range(1 + deltas):
        for _ in range(random.randint(0, 4)):
            model.train(*drawn(random, 30, 40), random)
        delta, whole = str(tmp_path / piece.format(number)), str(tmp_path / "whole" / piece.format(number))
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        assert model.saver.rows.has_base == (number > 0)
        model.saver.save(model.session, delta, is_delta=number > 0)
        model.whole.save(model.session, whole)
        expected = content(whole)
        assert content(delta, expire) == expected and counted(delta) == counted(whole)
        again.saver.restore(again.session, delta)
        again.whole.save(again.session, whole + "-again")
        assert content(whole + "-again") == expected and counted(whole + "-again") == counted(whole)
        for table in model.tables:
            assert rows_in(delta, table) == rows_in(whole, table)
    assert not again.saver.rows.has_base  # its next one is whole


def disk(folder: Path) -> int:
    """Bytes of all files of rows, each once however many names it has."""
    return sum({each.stat().st_ino: each.stat().st_size for each in folder.rglob("*.data-*")}.values())


def test_rows_with_as_many_slots_of_another_optimizer_are_refused(tmp_path: Path) -> None:
    model, path = Model(), str(tmp_path / "model-1")
    model.train(*drawn(np.random.RandomState(0), 30, 40), np.random.RandomState(0))
    model.whole.save(model.session, path)
    (saved,) = model.whole.rows.saved
    vars(saved)["_kept"] = ["Momentum"]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"expected rows with the slots \['Momentum'\] .* \['Adagrad'\]"
    ):
        model.whole.restore(model.session, path)


def test_a_delta_takes_the_bytes_of_the_rows_that_changed(tmp_path: Path) -> None:
    random, model = np.random.RandomState(0), Model()
    model.train(np.arange(50_000), np.zeros(50_000, np.int32), random)
    model.saver.save(model.session, str(tmp_path / "model-0"))
    before = disk(tmp_path)
    changed = np.arange(0, 50_000, 25)
    model.train(changed, np.zeros(len(changed), np.int32), random)
    model.saver.save(model.session, str(tmp_path / "model-1"), is_delta=True)
    # id, table, used, row, and as much again as the row for Adagrad
    assert 1 <= (disk(tmp_path) - before) / (len(changed) * (8 + 4 + 4 + 2 * 4 * WIDTH)) < 1.1
    assert before > 20 * (disk(tmp_path) - before)


def test_a_save_after_one_that_ended_between_two_pieces_has_a_server_for_each_part(tmp_path: Path) -> None:
    random, model, path = np.random.RandomState(0), Model(expire=-40, piece_bytes=400), str(tmp_path / "model-1")
    calls: List[int] = []

    def goes_on() -> bool:  # ends in the second round of writing ahead
        calls.append(1)
        if len(calls) == 8:
            model.train(*drawn(random, 200, 400), random)
        return len(calls) < first + 3

    model.train(*drawn(random, 60, 100), random)
    first = sum(1 for saved in model.saver.rows.saved for _ in saved.rows(model.session, 400, False))
    model.saver.rows.write_ahead(model.session, path, 400, False, goes_on)
    assert model.saver.rows.are_ahead and len(calls) > first
    model.saver.save(model.session, path, is_delta=True)
    model.whole.save(model.session, str(tmp_path / "whole-1"))
    assert content(path) == content(str(tmp_path / "whole-1"))
    model.saver.restore(model.session, path)


def test_a_delta_needs_no_other_checkpoint(tmp_path: Path) -> None:
    random, model = np.random.RandomState(0), Model()
    for number in range(3):
        model.train(*drawn(random, 30, 40), random)
        model.saver.save(model.session, str(tmp_path / f"model-{number}"), is_delta=number > 0)
    model.whole.save(model.session, str(tmp_path / "whole-2"))
    for each in tmp_path.glob("model-[01].*"):
        each.unlink()
    remove_unfinished(tmp_path)  # as the next chief does
    assert not (tmp_path / ROWS).exists()
    assert content(str(tmp_path / "model-2")) == content(str(tmp_path / "whole-2"))


def failing(*_: Any) -> None:
    raise FileNotFoundError("gone")


@pytest.mark.parametrize("is_delta", few([True, False], [True]))
def test_after_a_save_that_failed_the_next_one_is_whole(
    is_delta: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, model = np.random.RandomState(0), Model()
    model.saver.save(model.session, str(tmp_path / "model-0"))
    model.train(*drawn(random, 30, 40), random)
    with monkeypatch.context() as patch:
        patch.setattr("cluster.checkpoints.streamed_saver.publish", failing)
        with pytest.raises(FileNotFoundError):
            model.saver.save(model.session, str(tmp_path / "model-1"), is_delta)
    assert not model.saver.rows.has_base and not (tmp_path / ROWS).exists()


def refused(*_: Any) -> None:
    raise PermissionError("no links here")


@pytest.mark.parametrize("has_links", few([True, False], [False]))
def test_the_chief_saves_deltas_between_whole_checkpoints(
    has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    random, model, now, written = np.random.RandomState(0), Model(), [0.0], {}
    with model.session.graph.as_default():
        settings = Checkpoint(every_s=60, delta_every_s=10, keep=100)
        place = (HERE, str(tmp_path), lambda: now[0])
        saves = Checkpoints(settings, [model.step], *place, rows=model.rows, while_training=False)
    write = StreamedSaver.write

    def noted(saver: StreamedSaver, session: Any, path: str, is_delta: bool) -> Any:
        written[int(now[0])] = is_delta
        return write(saver, session, path, is_delta)

    monkeypatch.setattr(StreamedSaver, "write", noted)
    for step in range(160):
        now[0] = float(step)
        model.train(*drawn(random, 3, 1000), random)
        saves.save_if_due(model.session, step)
    saves.save_quickly(model.session, 160)  # as on request
    assert written.pop(159) == has_links
    whole = [10, 70, 130]
    assert written == {step: step not in whole for step in (range(10, 160, 10) if has_links else whole)}
    assert ("its file system has no hard links" in capsys.readouterr().out) != has_links
