"""Cases and ways say where tasks run, what they train, and what they cannot beat."""

import numpy as np
import pytest

from tests.benchmarks.speed.bounds import bytes_per_s
from tests.benchmarks.speed.cases import CASES, WAYS, Case, Way


def test_tasks_of_their_own_hosts_are_apart() -> None:
    case = Case("c", 2, 3, 100, 8, 8)
    places = [case.host_of("worker", 0), case.host_of("worker", 1), *(case.host_of("ps", n) for n in range(3))]
    assert places == list(range(case.hosts)) == [0, 1, 2, 3, 4]


def test_colocated_tasks_share_hosts() -> None:
    case = Case("c", 2, 2, 100, 8, 8, colocated=True)
    assert case.hosts == 2
    assert case.host_of("ps", 1) == case.host_of("worker", 1) == 1


def test_a_wire_of_16_bits_halves_the_bound() -> None:
    case = CASES["dedicated"]
    assert case.bound_ms() == pytest.approx(1000 * 40e6 / bytes_per_s(250))
    assert case.bound_ms("float16") == pytest.approx(500 * 40e6 / bytes_per_s(250))


def test_on_four_shared_hosts_the_bound_is_one_and_a_half_times_that() -> None:
    assert CASES["colocated"].bound_ms() == pytest.approx(1500 * 40e6 / bytes_per_s(250))


def test_without_a_limit_there_is_no_bound() -> None:
    assert CASES["unlimited-16"].bound_ms() is None


def test_every_way_trains_the_same_bytes() -> None:
    for case in (case for case in CASES.values() if case.job is None):
        sizes = {sum(4 * int(np.prod(shape)) for shape in way.shapes(case)) for way in WAYS.values()}
        assert sizes == {case.megabytes * 1e6}


def test_a_way_tells_its_wire() -> None:
    assert (WAYS["stock"].wire, Way("w", {"wire": "float16"}).wire) == ("float32", "float16")


def test_a_real_model_is_not_cut_by_hand_and_the_textbooks_script_has_no_towers() -> None:
    ways = [WAYS[name] for name in ("stock", "stock-cut", "ours")]
    assert [way.name for way in ways if CASES["digits"].allows(way)] == ["stock", "ours"]
    assert [way.name for way in ways if CASES["towers"].allows(way)] == ["ours"]
