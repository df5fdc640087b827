"""The newest run and its lead, out of what the hosts of a file answer."""

import json
from typing import Any, Dict, List

import pytest

from launch.errors import CannotStart, UsageError
from launch.fleet import Fleet
from launch.history import locate, newest_status, status_in
from launch.status.run import RunStatus
from launch.status.values import to_values
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

OLD, NEW = "r-20991231-235959", "r-20261120-120000"
NO_RUN: Dict[str, Any] = {"run": None, "highest": 0, "status": None}


def of_run(run: str, lead: str) -> RunStatus:
    """The status of a run, which says who reported it."""
    return RunStatus(run, cause=f"reported by {lead}")


def of(run: str, generation: int, lead: str, lives: bool = False) -> Dict[str, Any]:
    """What a host answers that took part in a run."""
    return {"run": run, "generation": generation, "lead": lead, "lives": lives, "status": to_values(of_run(run, lead))}


def host(name: str, *answers: Dict[str, Any]) -> FakeHost:
    """A host that answers so, question by question; after that, and without any, it is out of reach."""
    channels = [FakeChannel(b'{"missing": []}\n', json.dumps(answer).encode() + b"\n") for answer in answers]
    return FakeHost(name, *channels)


def fleet(*hosts: FakeHost) -> Fleet:
    return fleet_of({each.name: each for each in hosts})


def test_what_a_member_records_of_its_own_tasks_is_no_status_of_a_run() -> None:
    assert status_in("h1", {"status": {"run": NEW, "tasks": {"worker:1": {"pid": 7, "alive": True}}}}) is None
    assert status_in("h1", {"status": None}) is None


def test_a_run_that_lives_and_is_led_by_the_chiefs_host_needs_no_other_host() -> None:
    other = host("h2")
    located = locate(fleet(host("h1", of(NEW, 2, "h1", lives=True)), other))
    assert located == (of_run(NEW, "h1"), [], NEW) and other.opened == []


def test_a_run_that_lives_elsewhere_comes_before_one_that_is_over() -> None:
    hosts = fleet(host("h1", of(OLD, 9, "h1")), host("h2", *[of(NEW, 2, "h2", lives=True)] * 2))
    assert locate(hosts).status == of_run(NEW, "h2") and hosts.lead == "h2"


def test_of_runs_that_are_over_the_one_that_began_last_is_meant() -> None:
    hosts = fleet(host("h1", of(OLD, 1, "h1")), host("h2", *[of(NEW, 2, "h2")] * 2), host("h3", NO_RUN))
    assert locate(hosts).status == of_run(NEW, "h2")


def test_the_lead_is_asked_where_the_files_first_host_is_a_member() -> None:
    hosts = fleet(host("h2", of(NEW, 2, "h1", lives=True)), host("h1", *[of(NEW, 2, "h1", lives=True)] * 2))
    assert locate(hosts).status == of_run(NEW, "h1")


def test_where_the_first_host_is_lost_another_that_leads_is_found() -> None:
    assert locate(fleet(host("h1"), host("h2", *[of(NEW, 2, "h2", lives=True)] * 2))).status == of_run(NEW, "h2")


def test_a_lead_out_of_reach_is_named_also_where_others_know_its_run() -> None:
    with pytest.raises(CannotStart, match=r"h1: out of reach\n.*continue without it with .* --exclude h1"):
        newest_status(fleet(host("h1"), host("h2", of(NEW, 2, "h1"))), "r.yaml")


def test_hosts_that_cannot_be_asked_are_named_unless_the_run_lives() -> None:
    lines: List[str] = []
    newest_status(fleet(host("h1", of(NEW, 2, "h1")), host("h2")), "r.yaml", lines.append)
    assert lines == ["h2: out of reach; a newer run may be there"]


def test_a_run_whose_status_a_power_cut_has_left_in_pieces_is_named() -> None:
    without = {**of(NEW, 2, "h1"), "status": None}
    with pytest.raises(
        UsageError, match=f"{NEW}: expected its lead's record on h1, found none; see `launch runs r.yaml`"
    ):
        newest_status(fleet(host("h1", without), host("h2", NO_RUN)), "r.yaml")


def test_where_no_host_knows_a_run_there_is_none() -> None:
    with pytest.raises(UsageError, match=r"r.yaml: no run of this name has been on h\[1-2\]; start one with"):
        newest_status(fleet(host("h1", NO_RUN), host("h2", NO_RUN)), "r.yaml")
