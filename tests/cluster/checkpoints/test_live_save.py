"""Checkpoints that are written while training goes on, beside whole ones of the same moment."""

import itertools
import os
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.checkpoints.row_pieces import RowPieces
from cluster.checkpoints.saver import Checkpoints
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.protocol.checkpoint_files import PARTIAL, ROWS, list_checkpoints
from cluster.recommend.tables.saved_tables import SavedTables
from cluster.runtime.tf_compat import tf
from cluster.task import Checkpoint
from tests.cluster.checkpoints.test_deltas import HERE, Model, content, counted, drawn, refused
from tests.support.nightly import few
from tests.support.waiting import eventually

PIECE = 2000  # bytes: so that many steps come between the pieces


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.02)
    monkeypatch.setattr("cluster.recommend.tables.store.CANDIDATES", 12)
    monkeypatch.setattr("cluster.recommend.tables.store._FRESH", 12)
    monkeypatch.setattr(StreamedSaver.__init__, "__defaults__", (PIECE, None, False))
    monkeypatch.setattr(os, "fsync", lambda _: None)  # of many pieces: a busy disk takes long


class Run:
    """A model that trains, whose chief saves into ``folder``; after each step all is saved into ``whole``, too."""

    def __init__(self, folder: Path, admit: int = 1, expire: int = 0, seed: int = 0, **settings: Any):
        self.folder, self.whole, self.expire = folder / "saved", folder / "whole", expire
        self.model, self.random, self.step = Model(admit, expire), np.random.RandomState(seed), 0
        self.whole.mkdir()
        with self.model.session.graph.as_default():
            place = (HERE, str(self.folder))
            self.saves = Checkpoints(Checkpoint(keep=100, **settings), [self.model.step], *place, rows=self.model.rows)

    @property
    def session(self) -> Any:
        return self.model.session

    def train(self, ids: int = 30) -> None:
        self.step += 1
        self.model.train(*drawn(self.random, ids, 2 * ids), self.random)
        self.model.whole.save(self.session, str(self.whole / f"model-{self.step}"))

    def train_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.train()
            self.saves.save_if_due(self.session, self.step)

    def saves_until(self, event: threading.Event) -> Callable[[], bool]:
        def save() -> bool:
            self.saves.save_if_due(self.session, self.step)
            return event.is_set()

        return save

    def steps(self) -> List[int]:
        """Return the steps of the checkpoints, each of which was compared with the whole one."""
        found = list_checkpoints(self.folder)
        for each in found:
            whole = str(self.whole / f"model-{each.step}")
            assert content(each.path, self.expire) == content(whole) and counted(each.path) == counted(whole)
        assert not list(self.folder.glob(f"*{PARTIAL}"))
        return sorted(each.step for each in found)


class Paused:
    """Let ``method`` of a class wait, once it has done its work so often, until ``go_on``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, after: int = 0):
        self.waits, self._goes_on, self._calls, self._after = threading.Event(), threading.Event(), 0, after
        self._work = getattr(owner, method)
        monkeypatch.setattr(owner, method, lambda *arguments, **named: self._call(*arguments, **named))

    def _call(self, *arguments: Any, **named: Any) -> Any:
        self._calls += 1
        if self._calls > self._after:
            self.waits.set()
            assert self._goes_on.wait(60)
        return self._work(*arguments, **named)

    def go_on(self) -> None:
        self._goes_on.set()


class HeldReport(threading.Event):
    """Lets the chief go on, but writes nothing until ``written``."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def set(self) -> None:
        super().set()
        assert self.written.wait(60)


@pytest.mark.parametrize(
    ("seed", "deltas"), few([(0, False), (0, True), (1, False), (1, True), (10, True)], [(10, True)])
)
def test_a_live_save_is_a_whole_checkpoint_of_a_later_step(seed: int, deltas: bool, tmp_path: Path) -> None:
    random = np.random.RandomState(seed)
    admit, expire = int(random.randint(1, 4)), int(random.choice([0, 3, 8, -10, -200]))
    run = Run(tmp_path, admit, expire, seed, delta_every_s=1000.0 if deltas else None)
    begun = []
    for _ in range(2):
        run.train(300)
        run.saves.save_live(run.session, run.step)
        begun.append(run.step)
        run.train_until(lambda: not run.saves.is_saving)
    steps = run.steps()
    assert len(steps) == 2 and all(first < step for first, step in zip(begun, steps))
    assert run.saves.step == steps[-1]
    again = Model(admit, expire)
    again.saver.restore(again.session, str(run.folder / f"model-{steps[-1]}"))
    again.whole.save(again.session, str(tmp_path / "again"))
    assert content(str(tmp_path / "again")) == content(str(run.whole / f"model-{steps[-1]}"))
    assert (run.folder / ROWS).exists() == deltas


def test_what_changed_last_is_written_after_training_has_gone_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamedSaver.__init__, "__defaults__", (1 << 20, None, False))  # more than any round has
    run = Run(tmp_path)
    with run.session.graph.as_default():
        taken = tf.assign_add(run.model.step, 1)
    for number in (1, 2):
        run.train(300)
        run.saves.save_live(run.session, run.step)
        eventually("rows ahead", lambda: run.saves._saver.rows.are_ahead, 60)
        steps, is_read = run.session.run(run.model.step), HeldReport()
        run.saves._saver._last._is_read = is_read

        eventually("all read", run.saves_until(is_read), 60)
        for _ in range(3):
            run.train(300)
            run.session.run(taken)
        assert run.saves.is_saving and not list(run.folder.rglob("last-*.index"))
        is_read.written.set()
        run.train_until(lambda: not run.saves.is_saving)
        assert len(run.steps()) == number
        newest = tf.train.load_checkpoint(str(run.folder / f"model-{run.saves.step}"))
        assert newest.get_tensor("global_step") == steps


def test_a_live_save_has_variables_of_every_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamedSaver.__init__, "__defaults__", (1 << 20, None, False))
    names = [
        "bool",
        "string",
        "float16",
        "bfloat16",
        "complex64",
        "int8",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int64",
    ]
    run, values = Run(tmp_path), np.array([[0, 1], [1, 1]])
    with run.session.graph.as_default():
        kept = [tf.Variable(_of_type(values, name), name=name, use_resource=True) for name in names]
        place = (HERE, str(run.folder))
        run.saves = Checkpoints(Checkpoint(keep=100), [run.model.step, *kept], *place, rows=run.model.rows)
        run.session.run([each.initializer for each in kept])
    run.train(300)
    run.saves.save_live(run.session, run.step)
    run.train_until(lambda: not run.saves.is_saving)
    assert run.saves.problem is None and run.steps() == [run.saves.step]
    found = tf.train.load_checkpoint(str(run.folder / f"model-{run.saves.step}"))
    for each in kept:
        assert found.get_tensor(each.op.name).tolist() == run.session.run(each).tolist()


def _of_type(values: np.ndarray, name: str) -> Any:
    return tf.constant(values.astype(str)) if name == "string" else tf.constant(values, tf.as_dtype(name))


def test_training_goes_on_when_the_last_rows_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StreamedSaver.__init__, "__defaults__", (1 << 20, None, False))
    run = Run(tmp_path, delta_every_s=1000.0)
    run.train(300)
    with monkeypatch.context() as patch:
        patch.setattr(SavedTables, "note_last", failing)
        run.saves.save_live(run.session, run.step)
        run.train_until(lambda: not run.saves.is_saving)
    assert "No space left" in str(run.saves.problem) and run.steps() == [] and not (run.folder / ROWS).exists()
    run.saves.save_live(run.session, run.step)
    run.train_until(lambda: not run.saves.is_saving)
    assert run.steps() == [run.saves.step]


def test_due_checkpoints_of_tables_are_written_while_training_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, every_s=0.0)
    run.train()
    run.saves.save_if_due(run.session, run.step)
    assert run.saves.is_saving and run.saves.step is None
    run.train_until(lambda: run.saves.whole_saves == 2)
    assert run.saves.step in run.steps()


def test_a_save_at_once_ends_one_that_writes_ahead_and_uses_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Paused(monkeypatch, RowPieces, "_write_round", after=1)
    run = Run(tmp_path)
    run.train(300)
    run.saves.save_live(run.session, run.step)
    assert second.waits.wait(60)
    run.train()
    written: Dict[str, bool] = {}
    write = StreamedSaver.write
    monkeypatch.setattr(StreamedSaver, "write", lambda *them: written.setdefault("delta", them[3]) and write(*them))
    threading.Timer(0.2, second.go_on).start()
    run.saves.save_quickly(run.session, run.step)
    assert written == {"delta": True} and run.steps() == [run.step] and not run.saves.is_saving


def test_a_save_at_once_ends_one_that_has_not_written_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Paused(monkeypatch, RowPieces, "_write_round")
    run = Run(tmp_path)
    run.train(300)
    run.saves.save_live(run.session, run.step)
    assert first.waits.wait(60)
    threading.Timer(0.2, first.go_on).start()
    run.saves.save_now(run.session, run.step)
    assert run.steps() == [run.step] and not (run.folder / ROWS).exists()


def test_a_save_that_comes_late_is_followed_by_one_of_a_later_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishing = Paused(monkeypatch, Checkpoints, "_publish")
    run = Run(tmp_path)
    run.train(300)
    run.saves.save_live(run.session, run.step)
    run.train_until(publishing.waits.is_set)
    asked_at = run.step
    run.saves.save_live(run.session, run.step)
    run.train()
    publishing.go_on()
    run.train_until(lambda: not run.saves.is_saving)
    first, second = run.steps()
    assert first <= asked_at < second


def test_the_last_save_waits_for_one_that_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publishing = Paused(monkeypatch, Checkpoints, "_publish")
    run = Run(tmp_path)
    run.train(300)
    run.saves.save_live(run.session, run.step)
    run.train_until(publishing.waits.is_set)
    run.train()
    threading.Timer(0.2, publishing.go_on).start()
    run.saves.save_last(run.session, run.step)
    assert not (run.folder / ROWS).exists() and len(run.steps()) == 2 and run.steps()[-1] == run.saves.step == run.step


@pytest.mark.parametrize(
    ("owner", "method"),
    few(
        [(StreamedSaver, "write_ahead"), (Checkpoints, "_write"), (Checkpoints, "_publish")],
        [(StreamedSaver, "write_ahead"), (Checkpoints, "_publish")],
    ),
)
def test_training_goes_on_when_a_live_save_fails(
    owner: Any, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run = Run(tmp_path)
    run.train(300)
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, failing)
        run.saves.save_live(run.session, run.step)
        run.train_until(lambda: not run.saves.is_saving)
    assert run.saves.problem is not None and "No space left" in run.saves.problem and run.saves.step is None
    run.saves.save_live(run.session, run.step)
    run.train_until(lambda: not run.saves.is_saving)
    assert run.saves.problem is None and run.steps() == [run.saves.step]
    assert "can be written again" in capsys.readouterr().out


def test_a_file_system_without_hard_links_has_live_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refused)
    run = Run(tmp_path, delta_every_s=1000.0)
    run.train(300)
    run.saves.save_live(run.session, run.step)
    run.train_until(lambda: not run.saves.is_saving)
    assert run.steps() == [run.saves.step]


def test_a_save_of_a_closed_session_is_forgotten(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.train(3000)
    run.saves.save_live(run.session, run.step)
    run.session.close()
    run.saves.give_up()
    assert not run.saves.is_saving and run.steps() == [] and not (run.folder / ROWS).exists()


def test_a_place_that_goes_to_another_id_while_its_row_is_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id of the place is read first. Then it loses its row to another one, and the row is read."""
    model, random = Model(expire=2), np.random.RandomState(0)
    of = np.ones([1], np.int32)  # the table whose rows expire

    def give_its_place_away() -> np.bool_:
        for _ in range(40):
            model.train(np.array([next(others)], np.int64), of, random)
        return np.bool_(True)

    gather, stores = tf.gather, model.stores

    ids: List[Any] = []
    others = itertools.count(100)

    def late(params: Any, places: Any) -> Any:
        if params is store.rows:
            with tf.control_dependencies(ids[-1:]):
                read_later = tf.py_func(give_its_place_away, [], tf.bool)
            with tf.control_dependencies([read_later]):
                return gather(params, tf.identity(places))
        found = gather(params, places)
        if params is store.keys:
            ids.append(found)
        return found

    parts = []
    for store in stores:
        with model.session.graph.as_default(), monkeypatch.context() as patch:
            patch.setattr(tf, "gather", late)
            parts.append(store.live_part(tf.constant(0, tf.int64), store.places.count.read_value()))
    with model.session.graph.as_default():
        now = [store.live_part(tf.constant(0, tf.int64), store.places.count.read_value()) for store in stores]
    for part, after in zip(parts, now):
        model.train(np.array([next(others) for _ in range(16)]), np.ones(16, np.int32), random)
        assert len(model.session.run(after["keys"])) > 0  # of which the read gives the places away
        found = model.session.run(part)["keys"]
        assert set(found.tolist()) <= set(model.session.run(after["keys"]).tolist())


def test_an_update_that_has_its_number_but_not_yet_changed_rows_is_in_the_checkpoint(tmp_path: Path) -> None:
    model, random, path = Model(), np.random.RandomState(0), str(tmp_path / "model-1")
    model.train(np.arange(20), np.zeros(20, np.int32), random)
    stores = model.stores
    with model.session.graph.as_default():
        number = [tf.assign_add(store.updates, 1) for store in stores]
        rows = [tf.scatter_update(store.rows, [0], tf.fill([1, store.width], 9.0)) for store in stores]
        used = [tf.scatter_update(store.used, [0], tf.fill([1], tf.cast(store.updates, tf.int32))) for store in stores]
    model.session.run(number)
    model.saver.write_ahead(model.session, path, False, lambda: True)
    model.session.run([rows, used])
    model.saver.save(model.session, path, is_delta=True)
    model.whole.save(model.session, str(tmp_path / "whole-1"))
    assert content(path) == content(str(tmp_path / "whole-1"))
