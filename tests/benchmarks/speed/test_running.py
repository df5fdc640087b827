"""A case is measured end to end on fake hosts, in both programs, and nothing runs there afterwards."""

from pathlib import Path
from typing import Any, Callable

import pytest

from tests.benchmarks.speed import transfer
from tests.benchmarks.speed.bounds import bytes_per_s
from tests.benchmarks.speed.cases import Case, Way
from tests.benchmarks.speed.running import Failed, Pace, measure
from tests.support.hosts import FakeHosts
from tests.support.nightly import few

CASE = Case("c", 1, 1, None, 1, 4)
PACE = Pace(warm=1, seconds=0, steps=3)


def assert_measured(found: Any, hosts: FakeHosts) -> None:
    assert found["steps"] >= 3
    assert 0 < found["step_ms"] < 10_000
    assert 0 < found["joined_s"] < 300
    assert 10 < found["ps_peak_mb"] < 10_000 and 10 < found["chief_peak_mb"] < 10_000
    assert [host.processes() for host in hosts] == [[], []]


@pytest.mark.nightly  # of the benchmark alone
@pytest.mark.parametrize(
    "way",
    [Way("stock"), Way("bare", script="bare"), Way("async", {"mode": "async"}, waits=False)],
    ids=lambda way: str(way.name),
)
def test_a_measurement_has_the_step_time_and_the_bytes_of_one_step(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path, way: Way
) -> None:
    hosts = fake_hosts(CASE.hosts)
    found = measure(hosts, CASE, way, PACE, tmp_path)
    assert_measured(found, hosts)
    # Of three steps, one may be counted in part: a card is read at another moment than a step ends.
    assert found["received_mb"] == pytest.approx(CASE.megabytes, rel=0.4)
    assert found["sent_mb"] == pytest.approx(CASE.megabytes, rel=0.4)


@pytest.mark.parametrize(
    ("towers", "wire", "megabytes"),
    few([(1, "float32", 8), (4, "bfloat16", 4), (1, "float16", 4)], [(4, "bfloat16", 4)]),
)
def test_the_model_travels_once_each_way_in_a_step_whatever_the_number_of_towers(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path, towers: int, wire: str, megabytes: float
) -> None:
    case = Case("bytes", 1, 1, None, 8, 4, towers=towers)
    many = Pace(warm=3, seconds=0, steps=60)  # a reading of the counters is off by a part of a step
    hosts = fake_hosts(case.hosts)
    found = measure(hosts, case, Way("bytes", {"wire": wire}), many, tmp_path)
    assert_measured(found, hosts)
    assert found["received_mb"] == pytest.approx(megabytes, rel=0.02)
    assert found["sent_mb"] == pytest.approx(megabytes, rel=0.02)


@pytest.mark.nightly
def test_a_task_that_fails_is_told_with_the_folder_of_its_log(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path
) -> None:
    with pytest.raises(Failed, match=f"worker:0 ended; see {tmp_path}"):
        measure(fake_hosts(CASE.hosts), CASE, Way("wrong", {"no": "such key"}), PACE, tmp_path)
    assert "no" in (tmp_path / "worker.0.log").read_text()


@pytest.mark.nightly
def test_a_socket_gets_about_what_the_bounds_say(fake_hosts: Callable[..., FakeHosts]) -> None:
    hosts = fake_hosts(2)
    for host in hosts:
        host.shape(50)
    assert transfer.bytes_per_s(hosts, 50) == pytest.approx(bytes_per_s(50), rel=0.3)
