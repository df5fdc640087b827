"""A case is measured end to end on fake hosts, in both programs, and nothing runs there afterwards."""

from pathlib import Path
from typing import Callable

import pytest

from tests.benchmarks.speed import transfer
from tests.benchmarks.speed.bounds import bytes_per_s
from tests.benchmarks.speed.cases import Case, Way
from tests.benchmarks.speed.running import Failed, Pace, measure
from tests.hosts import FakeHosts

CASE = Case("c", 1, 1, None, 1, 4)
PACE = Pace(warm=1, seconds=0, steps=3)


@pytest.mark.parametrize("way", [Way("stock"), Way("ours", {})], ids=lambda way: str(way.name))
def test_a_measurement_has_the_step_time_and_the_bytes_of_one_step(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path, way: Way
) -> None:
    hosts = fake_hosts(CASE.hosts)
    found = measure(hosts, CASE, way, PACE, tmp_path)
    assert found["steps"] >= 3
    assert 0 < found["step_ms"] < 10_000
    assert found["received_mb"] == pytest.approx(CASE.megabytes, rel=0.2)
    assert found["sent_mb"] == pytest.approx(CASE.megabytes, rel=0.2)
    assert [host.processes() for host in hosts] == [[], []]


def test_a_task_that_fails_is_told_with_the_folder_of_its_log(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path
) -> None:
    with pytest.raises(Failed, match=f"worker:0 ended; see {tmp_path}"):
        measure(fake_hosts(CASE.hosts), CASE, Way("wrong", {"no": "such key"}), PACE, tmp_path)
    assert "no" in (tmp_path / "worker.0.log").read_text()


def test_a_socket_gets_about_what_the_bounds_say(fake_hosts: Callable[..., FakeHosts]) -> None:
    hosts = fake_hosts(2)
    for host in hosts:
        host.shape(50)
    assert transfer.bytes_per_s(hosts, 50) == pytest.approx(bytes_per_s(50), rel=0.3)
