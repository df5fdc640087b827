"""One server's rows, as ids come and stay away, against a dictionary."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Set, Tuple

import numpy as np
import pytest

from cluster import embedding
from cluster.recommend.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.recommend.tables.splitmix import salt, signed
from cluster.recommend.tables.store import Store
from cluster.runtime.tf_compat import tf
from tests.cluster.recommend.tables import plain

WIDTH, RATE, FIRST = 2, 0.5, 0.1
Id = Tuple[int, int]  # number of the table, id


class Row(NamedTuple):
    values: np.ndarray
    total: np.ndarray  # of squares, as Adagrad has it
    used: int


class Dictionary:
    """What the rows should be. ``size``: ids in a full generation of candidates."""

    def __init__(self, tables: List[embedding.Table], size: int):
        self._tables, self._size = tables, size
        self.rows: Dict[Id, Row] = {}
        self._younger: Dict[Id, int] = {}
        self._older: Dict[Id, int] = {}
        self.step = 0

    def first(self, each: Id) -> np.ndarray:
        table = self._tables[each[0]]
        return np.array(plain.first_row_of(table.name, WIDTH, table.initializer, each[1]), np.float32)

    def _live(self, each: Id) -> bool:
        limit = self._tables[each[0]].expire
        return each in self.rows and not (limit and self.step + 1 - self.rows[each].used > limit)

    def look_up(self, ids: List[Id]) -> List[np.ndarray]:
        return [self.rows[each].values if self._live(each) else self.first(each) for each in ids]

    def update(self, ids: List[Id], grads: np.ndarray) -> None:
        live = [self._live(each) for each in ids]
        self.step += 1
        for each, grad, has_row in zip(ids, grads, live):
            if not has_row:
                count = self._younger.get(each, self._older.get(each, 0)) + 1
                is_due = count >= self._tables[each[0]].admit
                self._younger[each] = 0 if is_due else count
                self.rows.pop(each, None)
                if not is_due:
                    continue
                self.rows[each] = Row(self.first(each), np.full(WIDTH, FIRST, np.float32), 0)
            row = self.rows[each]
            total = row.total + grad * grad
            self.rows[each] = Row(row.values - RATE * grad / np.sqrt(total), total, self.step)
        if not all(live) and len(self._younger) > self._size:
            self._younger, self._older = {}, self._younger
        self._keep_bound()

    def _keep_bound(self) -> None:
        """Let the oldest rows go of the table that has the most above its bound."""
        above = [
            (sum(each[0] == number for each in self.rows) - table.most, -number)
            for number, table in enumerate(self._tables)
            if table.most
        ]
        excess, number = max(above, default=(0, 0))
        if excess > 0:
            most = self._tables[-number].most
            used = sorted((row.used for each, row in self.rows.items() if each[0] == -number), reverse=True)
            last = used[most - most // 16 - 1]
            floor = min(last + (last == used[most]), self.step)
            self.rows = {each: row for each, row in self.rows.items() if each[0] != -number or row.used >= floor}


class Server:
    """A store in a session of this process."""

    def __init__(self, tables: List[embedding.Table], is_async: bool = False):
        self.tables = tables
        optimizer = tf.train.AdagradOptimizer(RATE, FIRST)
        self.store = Store("embeddings", "/cpu:0", tables, slots_of(optimizer), waits=not is_async)
        self.keys, self.of = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [None])
        self.grads = tf.placeholder(tf.float32, [None, WIDTH])
        self._rows = {trains: self.store.find(self.keys, self.of, trains) for trains in (True, False)}
        grads = tf.IndexedSlices(self.grads, self.keys)
        asked = {self.store.rows.op.name: [(self.keys, self.of)]} if is_async else {}
        rule = RowOptimizer(rule_of(optimizer), [self.store], asked)
        self._update = rule.apply_gradients([(grads, self.store.rows)])
        self._part = self.store.live_part(tf.zeros([], tf.int64), self.store.places.count)
        self.session = tf.Session()
        self.session.run(self.store.first())

    def _feed(self, ids: List[Id]) -> Dict[Any, Any]:
        keys = [signed(plain.key(self.tables[table].name, each)) for table, each in ids]
        return {self.keys: np.array(keys, np.int64), self.of: np.array([table for table, _ in ids], np.int32)}

    def look_up(self, ids: List[Id], trains: bool) -> np.ndarray:
        return np.asarray(self.session.run(self._rows[trains], self._feed(ids)))

    def update(self, ids: List[Id], grads: np.ndarray) -> None:
        self.session.run(self._update, {**self._feed(ids), self.grads: grads})

    def rows(self) -> Dict[Id, Any]:
        part = self.session.run(self._part)
        found = {}
        for key, table, *values in zip(*(part[name] for name in ("keys", "tables", "rows", "slots", "used"))):
            (each,) = plain.ids_of(np.array([key]), self.tables[table].name)
            found[(int(table), int(each))] = tuple(values)
        assert len(found) == len(part["keys"])  # each id once
        return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.02)
    monkeypatch.setattr("cluster.recommend.tables.store.CANDIDATES", 12)
    monkeypatch.setattr("cluster.recommend.tables.store._FRESH", 12)
    monkeypatch.setattr("cluster.recommend.tables.row_places._FIRST_ENTRIES", 64)


def drawn_tables(random: np.random.RandomState) -> List[embedding.Table]:
    return [
        embedding.table(
            f"table{number}",
            WIDTH,
            admit=embedding.after(int(random.randint(1, 4))) if random.randint(2) else None,
            expire=[
                None,
                embedding.unused_for(steps=int(random.randint(1, 8))),
                embedding.at_most(int(random.randint(1, 24))),
            ][random.randint(3)],
        )
        for number in range(random.randint(1, 4))
    ]


def drawn_id(random: np.random.RandomState, tables: List[embedding.Table], each: int) -> Id:
    """An id of any table; 2 and 3 are those of the first one that a hash table refuses."""
    table = int(random.randint(len(tables)))
    return table, plain.marks(tables[table].name)[each - 2] if each in (2, 3) and not table else each


@pytest.mark.parametrize("seed", range(12))
def test_rows_appear_and_expire_as_in_a_dictionary(seed: int) -> None:
    random = np.random.RandomState(seed)
    with tf.Graph().as_default():
        tables = drawn_tables(random)
        expected, server = Dictionary(tables, 12), Server(tables)
        for _ in range(60):
            drawn: Set[Id] = {
                drawn_id(random, tables, int(each)) for each in random.zipf(1.4, random.randint(0, 12)) % 50
            }
            ids = sorted(drawn)
            for trains in (False, True):
                np.testing.assert_allclose(
                    server.look_up(ids, trains), np.reshape(expected.look_up(ids), [-1, WIDTH]), rtol=1e-5, atol=1e-6
                )
            grads = random.uniform(-1, 1, [len(ids), WIDTH]).astype(np.float32)
            server.update(ids, grads)
            expected.update(ids, grads)
        found = server.rows()
        live = {each: row for each, row in expected.rows.items() if expected._live(each)}
        assert set(live) == set(found)
        for each, row in live.items():
            np.testing.assert_allclose(found[each][0], row.values, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found[each][1], row.total, rtol=1e-4, atol=1e-5)
            assert found[each][2] == row.used


def test_the_places_of_expired_rows_are_taken_again() -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.unused_for(steps=3))])
        for step in range(100):
            ids = [(0, 10 * step + each) for each in range(10)]
            server.look_up(ids, True)
            server.update(ids, np.ones([10, WIDTH], np.float32))
        assert server.session.run(server.store.places.count) <= 10 * (3 + 3)
        assert len(server.rows()) == 10 * 3


def test_a_bound_keeps_the_rows_that_were_used_last() -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.at_most(160))])
        for step in range(100):
            ids = [(0, 0), *((0, 1 + 10 * step + each) for each in range(10))]
            server.look_up(ids, True)
            server.update(ids, np.ones([11, WIDTH], np.float32))
            rows = server.rows()
            assert len(rows) <= 160 and (0, 0) in rows
            kept = [each for _, each in rows if each]
            assert kept == sorted(kept) or set(kept) == set(range(min(kept), 11 + 10 * step)), "the newest"
        assert server.session.run(server.store.places.count) <= 160 + 11, "memory is used again"
        many = [(0, 10_000 + each) for each in range(500)]
        server.look_up(many, True)
        server.update(many, np.ones([500, WIDTH], np.float32))
        assert set(server.rows()) == set(many), "the ids of one step stay, and no others"


def test_rows_of_one_step_stay_together_where_the_bound_allows_it() -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.at_most(100))])
        for step in range(6):
            ids = [(0, 50 * step + each) for each in range(50)]
            server.look_up(ids, True)
            server.update(ids, np.ones([50, WIDTH], np.float32))
            assert len(server.rows()) == min(100, 50 * (step + 1))


def test_a_count_of_rows_that_is_wrong_is_mended() -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.at_most(32))])
        server.session.run(server.store._bound.count(tf.zeros([30], tf.int32)))  # of a step that was given up
        for step in range(20):
            ids = [(0, 5 * step + each) for each in range(5)]
            server.look_up(ids, True)
            server.update(ids, np.ones([5, WIDTH], np.float32))
        assert 26 <= len(server.rows()) <= 32


def test_no_gradient_is_lost_where_workers_do_not_wait_for_one_another() -> None:
    workers, times = 4, 40
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, initializer=tf.zeros_initializer())], is_async=True)

        def work(seed: int) -> Set[Id]:
            random, given = np.random.RandomState(seed), set()
            for _ in range(times):
                ids = [(0, 0), *((0, 1 + int(each)) for each in random.permutation(50)[:10])]
                server.look_up(ids, True)
                server.update(ids, np.ones([len(ids), WIDTH], np.float32))
                given.update(ids)
            return given

        with ThreadPoolExecutor(workers) as pool:
            given = set().union(*pool.map(work, range(workers)))
        found = server.rows()
        assert set(found) == given
        totals = np.arange(1, workers * times + 1) + FIRST
        np.testing.assert_allclose(found[(0, 0)][1], totals[-1], rtol=1e-5)
        np.testing.assert_allclose(found[(0, 0)][0], -np.sum(RATE / np.sqrt(totals)), rtol=1e-4)
        assert sum(row[1][0] - FIRST for row in found.values()) == pytest.approx(workers * times * 11, rel=1e-5)


@pytest.mark.parametrize(("admit", "updates"), [(None, 1), (embedding.after(2), 0), (embedding.after(2), 2)])
def test_ids_of_two_tables_with_one_key_are_refused_by_name_and_id(admit: Any, updates: int) -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table(name, WIDTH, admit=admit) for name in ("users", "items")])
        server.look_up([(0, 7)], True)
        for _ in range(updates):
            server.update([(0, 7)], np.ones([1, WIDTH], np.float32))
        other = signed((7 + salt("users") - salt("items")) % (1 << 64))
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"users: id 7 and items: id {other}; give one"):
            server.look_up([(1, other)], True)


def test_a_store_begins_again_without_rows() -> None:
    with tf.Graph().as_default():
        server = Server([embedding.table("users", WIDTH, expire=embedding.unused_for(steps=3))])
        server.look_up([(0, 1)], True)
        server.update([(0, 1)], np.ones([1, WIDTH], np.float32))
        assert set(server.rows()) == {(0, 1)}
        server.session.run(server.store.first())
        assert not server.rows()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", 1 << 31], ids=str)
def test_a_rule_of_no_number_of_steps_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected a number of steps"):
        embedding.after(wrong)
    with pytest.raises(ValueError, match="expected a number of steps"):
        embedding.unused_for(steps=wrong)
    with pytest.raises(ValueError, match="expected a number of rows"):
        embedding.at_most(wrong)


def test_a_rule_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected admit like embedding.after\(2\), found 2"):
        embedding.table("users", WIDTH, admit=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected expire like embedding.unused_for"):
        embedding.table("users", WIDTH, expire=embedding.after(2))
