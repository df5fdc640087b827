"""Keys that lookups ask for, each once, and gradients of their rows, against numpy; and how keys travel."""

from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster import embedding
from cluster.recommend.tables import row_keys, splitmix
from cluster.recommend.tables.row_keys import chosen, distinct, summed, summed_by_key
from cluster.recommend.tables.store import Store
from cluster.runtime.tf_compat import tf

WIDTH = 3
WORKER, SERVER = "/job:worker/task:0", "/job:ps/task:0"


def tables(number: int) -> List[embedding.Table]:
    return [embedding.table(f"table{each}", WIDTH) for each in range(number)]


def drawn(random: np.random.RandomState) -> Tuple[List[np.ndarray], List[int]]:
    """The ids of some lookups, of which some have none, and the table of each."""
    number = random.randint(1, 6)
    sizes = random.choice([0, 1, 7, 40], number)
    return [random.randint(-5, 15, size).astype(np.int64) for size in sizes], list(random.randint(0, 4, number))


@pytest.mark.parametrize("seed", range(8))
def test_each_id_of_a_table_has_one_key_in_order_and_each_lookup_finds_its_own(seed: int) -> None:
    ids, of = drawn(np.random.RandomState(seed))
    known = tables(4)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(tf.int64, [None]) for _ in ids]
        found = session.run(distinct(fed, [known[each] for each in of], known), dict(zip(fed, ids)))
        salted = [each + splitmix.salt(known[table].name) for each, table in zip(ids, of)]
        own = session.run([row_keys.mix(tf.constant(each)) for each in salted])
    pairs = {(key, table) for some, table in zip(own, of) for key in some.tolist()}
    assert list(zip(found.keys.tolist(), found.tables.tolist())) == sorted(pairs)
    assert [found.keys[places].tolist() for places in found.places] == [each.tolist() for each in own]


def test_one_key_of_two_tables_in_a_batch_is_refused() -> None:
    known = tables(2)
    other = splitmix.signed((7 + splitmix.salt("table0") - splitmix.salt("table1")) % (1 << 64))
    with tf.Graph().as_default(), tf.Session() as session:
        found = distinct([tf.constant([7, 8], tf.int64), tf.constant([other], tf.int64)], known, known)
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"table1: id {other} and table0: id 7; give"):
            session.run(found.keys)


def expected_sum(asked: np.ndarray, values: np.ndarray, places: np.ndarray) -> Dict[int, List[float]]:
    total: Dict[int, Any] = {}
    for value, place in zip(values, places):
        total[int(asked[place])] = total.get(int(asked[place]), 0) + value
    return {key: total[key].tolist() for key in sorted(total)}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_sum_of_gradients_has_every_key_with_one_once_in_order_and_no_other(is_sorted: bool, seed: int) -> None:
    random = np.random.RandomState(seed)
    asked = random.randint(-(1 << 63), (1 << 63) - 1, 12, np.int64)
    asked = np.sort(asked) if is_sorted else np.concatenate([asked, asked[:5]])
    sizes = random.choice([0, 1, 4, 30], 3)
    places = [random.randint(0, len(asked), size).astype(np.int64) for size in sizes]
    values = [random.randint(-50, 50, [size, WIDTH]).astype(np.float32) for size in sizes]
    with tf.Graph().as_default(), tf.Session() as session:
        grads = [tf.IndexedSlices(tf.constant(one), tf.constant(at)) for one, at in zip(values, places)]
        found = (summed if is_sorted else summed_by_key)(tf.constant(asked), grads)
        sums, of = session.run([found.grad.values, found.grad.indices])
    expected = expected_sum(asked, np.concatenate(values), np.concatenate(places))
    assert of.tolist() == list(expected) and sums.tolist() == list(expected.values())


@pytest.mark.parametrize("seed", range(4))
def test_a_mask_chooses_its_keys_and_one_of_other_keys_is_refused(seed: int) -> None:
    random = np.random.RandomState(seed)
    asked, mask = random.randint(-(1 << 63), (1 << 63) - 1, 9, np.int64), random.rand(9) < 0.5
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(chosen(tf.constant(asked), tf.constant(mask))).tolist() == asked[mask].tolist()
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ from the rows that its step looked up"):
            session.run(
                chosen(tf.placeholder_with_default(asked, [None]), tf.placeholder_with_default(mask[1:], [None]))
            )


@pytest.mark.parametrize("trains", [True, False])
def test_a_lookup_sends_its_keys_and_tables_to_a_server_once_and_nothing_comes_but_rows(trains: bool) -> None:
    with tf.Graph().as_default() as graph:
        with tf.device(WORKER):
            asked, of = tf.placeholder(tf.int64, [None], "keys"), tf.placeholder(tf.uint8, [None], "tables")
        store = Store("rows", SERVER, tables(2), [])
        store.find(*store.receive(asked, of), trains)
        sent = [(each, op) for op in graph.get_operations() for each in [*op.inputs, *op.control_inputs]]
        crossing = {
            each.name for each, op in sent if ("ps" in each.device) != ("ps" in op.device) and each.device and op.device
        }
    assert crossing == {"keys:0", "tables:0"}
