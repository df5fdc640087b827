"""Rows that expire by time go after their limit, and before another sixteenth; pauses and wrong clocks remove none."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.recommend.tables import row_floors
from cluster.runtime.tf_compat import tf
from tests.cluster.checkpoints.test_deltas import Model, content
from tests.cluster.recommend.tables.test_store import FIRST, WIDTH, Id, Server
from tests.support.nightly import few

HOUR = 3600.0


class Clock:
    """The clock of the servers, in seconds."""

    def __init__(self) -> None:
        self.time = 1.7e9

    def now(self) -> Any:
        time = tf.py_func(lambda: self.time, [], tf.float64, stateful=True)
        time.set_shape([])
        return time


@pytest.fixture(name="clock", autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.02)
    clock = Clock()
    monkeypatch.setattr(row_floors, "now", clock.now)
    return clock


def train(server: Server, ids: List[Id]) -> None:
    server.look_up(ids, True)
    server.update(ids, np.ones([len(ids), WIDTH], np.float32))


@pytest.mark.parametrize("seed", few(range(3), [0]))
def test_a_row_goes_after_its_time_and_no_row_before(seed: int, clock: Clock) -> None:
    random = np.random.RandomState(seed)
    limits = [10 * HOUR, 0.0, 25 * HOUR]
    with tf.Graph().as_default():
        rules = [embedding.unused_for(hours=each / HOUR) if each else None for each in limits]
        server = Server([embedding.table(f"t{number}", WIDTH, expire=rule) for number, rule in enumerate(rules)])
        last: Dict[Id, float] = {}
        updates: Dict[Id, int] = {}
        for _ in range(250):
            clock.time += random.uniform(0, 0.5) * HOUR
            ids = sorted({(int(random.randint(3)), int(each)) for each in random.zipf(1.3, 6) % 60})
            held = set(server.rows())
            train(server, ids)
            updates.update({each: updates[each] + 1 if each in held else 1 for each in ids})
            last.update(dict.fromkeys(ids, clock.time))
            rows = server.rows()
            for each, time in last.items():
                limit = limits[each[0]]
                if not limit or clock.time - time <= limit:
                    assert each in rows
                if limit and clock.time - time > limit * 17 / 16 + HOUR / 2:
                    assert each not in rows
            for each, row in rows.items():
                assert row[1][0] == pytest.approx(FIRST + updates[each]), "one that comes again begins again"
        assert {table for table, _ in set(last) - set(rows)} == {0, 2}


@pytest.mark.parametrize("pause_hours", [1.0, 2.5, 3.9])
def test_the_time_between_two_files_of_a_log_counts(pause_hours: float, clock: Clock) -> None:
    limit, step_s = 16 * HOUR, 10.0
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.unused_for(hours=16))])
        train(server, [(0, 1)])
        used = clock.time
        while clock.time - used < 2 * limit:
            clock.time += pause_hours * HOUR
            for _ in range(8):
                clock.time += step_s
                train(server, [(0, 0)])
            if clock.time - used <= limit:
                assert (0, 1) in server.rows()
            if clock.time - used > limit * 17 / 16 + 8 * step_s:
                assert (0, 1) not in server.rows()


@pytest.mark.parametrize("jump", [100.0, -100.0])
def test_a_pause_or_a_jump_of_the_clock_counts_as_a_sixteenth(jump: float, clock: Clock) -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.unused_for(hours=16))])
        train(server, [(0, 1)])
        for _ in range(8):
            clock.time += HOUR
            train(server, [(0, 0)])
        for _ in range(5):
            clock.time += jump * HOUR
            train(server, [(0, 0)])
        for _ in range(20):
            clock.time += 60
            train(server, [(0, 0)])
        assert set(server.rows()) == {(0, 0), (0, 1)}
        for _ in range(4):
            clock.time += HOUR
            train(server, [(0, 0)])
        assert set(server.rows()) == {(0, 0)}


def test_a_run_that_goes_on_counts_the_time_of_training_only(clock: Clock, tmp_path: Any) -> None:
    model, trained = Model(rule=embedding.unused_for(hours=16)), 0.0
    model.train(np.arange(40), np.ones([40], np.int32), np.random)
    for number in range(24):
        for _ in range(3):
            clock.time += HOUR / 4
            model.train(np.zeros([1], np.int64), np.ones([1], np.int32), np.random)
        trained += 0.75
        path = str(tmp_path / f"model-{number}")
        model.saver.save(model.session, path)
        expected = 40 if trained <= 16 else 1 if trained >= 17.25 else None
        assert expected in (None, len(content(path)))
        clock.time += (1000 if number % 2 else -1000) * HOUR  # the next run begins later, or where a clock is wrong
        model.saver.restore(model.session, path)


def test_another_limit_counts_from_the_start_of_the_run(clock: Clock, tmp_path: Any) -> None:
    path, models = str(tmp_path / "model-0"), [Model(rule=embedding.unused_for(hours=each)) for each in (16, 32)]
    models[0].train(np.arange(40), np.ones([40], np.int32), np.random)
    for _ in range(15):
        clock.time += HOUR
        models[0].train(np.zeros([1], np.int64), np.ones([1], np.int32), np.random)
    models[0].saver.save(models[0].session, path)
    models[1].saver.restore(models[1].session, path)
    for _ in range(32):
        clock.time += HOUR
        models[1].train(np.zeros([1], np.int64), np.ones([1], np.int32), np.random)
    models[1].saver.save(models[1].session, path + "-again")
    assert len(content(path + "-again")) == 40


def test_a_delta_has_the_rows_of_a_whole_checkpoint_when_rows_have_gone(clock: Clock, tmp_path: Any) -> None:
    random, model = np.random.RandomState(0), Model(rule=embedding.unused_for(hours=2))
    for number in range(40):
        clock.time += HOUR / 4
        ids = np.unique(random.zipf(1.3, 10) % 60)
        model.train(ids, np.ones(len(ids), np.int32), random)
        delta, whole = (str(tmp_path / f"{kind}-{number}") for kind in ("delta", "whole"))
        model.saver.save(model.session, delta, is_delta=number > 0)
        model.whole.save(model.session, whole)
        assert content(delta) == content(whole)
    assert len(content(delta)) < 60


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: embedding.unused_for(hours=0), "expected a number of hours above 0, found 0"),
        (lambda: embedding.unused_for(hours=float("inf")), "expected a number of hours above 0, found inf"),
        (lambda: embedding.unused_for(hours=float("nan")), "expected a number of hours above 0, found nan"),
        (lambda: embedding.unused_for(hours=True), "expected a number of hours above 0, found True"),
        (lambda: embedding.unused_for(hours=1, steps=2), "expected either steps or hours, found 2 and 1"),
        (lambda: embedding.unused_for(), "expected a number of steps"),
    ],
)
def test_a_time_that_is_none_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
