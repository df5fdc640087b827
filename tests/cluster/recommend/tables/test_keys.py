"""Keys are those of Python's own integers, alone and together, come back as ids, and spread over servers."""

from typing import Any, List

import numpy as np
import pytest

from cluster.recommend.tables import row_keys, splitmix
from cluster.runtime.tf_compat import tf
from tests.cluster.recommend.tables import plain
from tests.support.training.jobs import clicks

EDGES = [0, 1, -1, 2, -2, 1 << 31, -(1 << 31), 1 << 62, (1 << 63) - 1, -(1 << 63)]


def computed(*made: Any) -> List[Any]:
    with tf.Session() as session:
        return [each.tolist() for each in session.run(list(made))]


def any_ids(seed: int) -> List[int]:
    random = np.random.RandomState(seed)
    few = random.randint(-(1 << 63), (1 << 63) - 1, 200, np.int64).tolist()
    return [*EDGES, *few, *[1 << shift for shift in range(63)], *range(-50, 50)]


@pytest.mark.parametrize("name", ["user", "a/b", "x" * 200])
def test_keys_are_those_of_whole_numbers_and_come_back(name: str) -> None:
    ids = sorted(set(any_ids(len(name))))
    with tf.Graph().as_default():
        made = row_keys.mix(tf.constant(ids, tf.int64) + splitmix.salt(name))
        alone = row_keys.mix(tf.constant(ids[0], tf.int64) + splitmix.salt(name))
        found, first, back = computed(made, alone, row_keys.unmix(made) - splitmix.salt(name))
    assert found == [splitmix.signed(plain.key(name, each)) for each in ids]
    assert first == found[0] and back == ids and len(set(found)) == len(ids)


def test_users_of_the_jobs_have_both_keys_by_which_a_hash_table_marks_its_entries() -> None:
    assert plain.marks("user") == list(clicks.REFUSED)
    assert {*plain.marks("user")} <= {*clicks.examples(16)["user"].tolist()}


@pytest.mark.parametrize("by", [0, 1, 31, 52, 63])
def test_a_shift_brings_zeros(by: int) -> None:
    with tf.Graph().as_default():
        (found,) = computed(row_keys.shift_right(tf.constant(EDGES, tf.int64), by))
    assert found == [splitmix.signed((each & (1 << 64) - 1) >> by) for each in EDGES]


@pytest.mark.parametrize("servers", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("kind", ["counted", "even", "shifted", "skewed"])
def test_servers_get_even_shares_of_ids_however_these_are_made(servers: int, kind: str) -> None:
    count = np.arange(20000, dtype=np.int64)
    skewed = np.unique(np.random.RandomState(1).zipf(1.05, 100000).astype(np.uint64).view(np.int64))
    ids = {"counted": count, "even": count * 2, "shifted": count << 40, "skewed": skewed}[kind]
    with tf.Graph().as_default():
        (found,) = computed(row_keys.owners(row_keys.mix(tf.constant(ids) + splitmix.salt("user")), servers))
    shares = np.bincount(found, minlength=servers) / len(ids)
    # A server has whole buckets, and of random ids a share with this deviation.
    deviation = np.sqrt((1 - 1 / servers) / servers / len(ids))
    assert len(shares) == servers and np.all(np.abs(shares - 1 / servers) < 5 * deviation + 1 / row_keys.BUCKETS)


def test_servers_have_runs_of_keys() -> None:
    places = np.sort(np.random.RandomState(2).randint(-(1 << 63), (1 << 63) - 1, 1000, np.int64))
    for servers in (1, 2, 3, 5, 16):
        firsts = [-(-each * row_keys.BUCKETS // servers) for each in range(1, servers)]  # buckets
        edges = np.array([(bucket << 52) - (1 << 63) for bucket in firsts], np.int64)
        some = np.sort(np.concatenate([places, edges, edges - 1]))
        with tf.Graph().as_default():
            found, runs = computed(
                row_keys.owners(tf.constant(some), servers), row_keys.runs(tf.constant(some), servers)
            )
        assert found == sorted(found) and set(found) == set(range(servers))
        assert runs == np.bincount(found, minlength=servers).tolist()
