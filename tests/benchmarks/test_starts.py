"""A start is measured from its own first second, whatever ran on the hosts before."""

from pathlib import Path
from typing import Callable

import pytest

from tests.benchmarks.starts import ours
from tests.support.hosts import FakeHosts

pytestmark = pytest.mark.nightly  # of the benchmark alone: no claim about the product


def test_a_second_start_on_the_same_hosts_waits_for_its_own_first_step(
    fake_hosts: Callable[..., FakeHosts], tmp_path: Path
) -> None:
    hosts = fake_hosts(2)
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        found = ours(hosts, 1, folder)
        assert 1 < found.seconds < 300  # nothing imports TensorFlow in a second
        assert found.chief_mb > 100 and found.ps_mb > 100
        assert [host.processes() for host in hosts] == [[], []]
