"""The number that tells which of a name's runs began last."""

from pathlib import Path

import pytest

from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import note_generation
from launch.errors import CannotStart
from launch.run import draft
from tests.launch.end_to_end.test_two_hosts_here import HOSTS, Cluster
from tests.support.agent.requested import run_request
from tests.support.launch.fakes import FakeHost, fleet_of

NOW = 1_790_000_000.5
AHEAD = 4_000_000_000  # of a launcher whose clock was in the year 2096


def test_the_first_run_of_hosts_has_the_time_of_its_start() -> None:
    assert draft.next_generation([0, 0], NOW) == 1_790_000_000


def test_a_run_is_above_all_that_its_hosts_know_also_after_a_clock_was_ahead() -> None:
    assert draft.next_generation([7, AHEAD, 0], NOW) == AHEAD + 1


def test_every_host_is_asked_and_gets_the_same_number(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    earlier = RunFolder(Path(cluster.spec.workdir), "r-20260101-000000", "127.0.0.1")
    earlier.create()
    note_generation(earlier, AHEAD)
    with cluster.fleet:
        cluster.fleet.connect()
        numbered = draft.with_generation(cluster.fleet, cluster.requests)
    assert {host: request.generation for host, request in numbered.requests.items()} == dict.fromkeys(HOSTS, AHEAD + 1)
    assert numbered.is_free


def test_a_run_does_not_start_where_a_host_cannot_be_asked() -> None:
    with pytest.raises(CannotStart, match="h1: out of reach"):
        draft.with_generation(fleet_of({"h1": FakeHost("h1")}), {"h1": run_request(host="h1")})
