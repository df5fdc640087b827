"""Who would end part of a run is told so."""

import json
from typing import Any, Optional

import pytest

from launch.errors import CannotStart, UsageError
from launch.fleet import Fleet
from launch.teardown import refuse_part
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of


def fleet(status: Optional[Any]) -> Fleet:
    """The hosts a and b; a says that of a run that it leads."""
    led = {"run": "r-1", "lead": "a", "lives": True, "generation": 1} if status else {"run": None}
    answer = FakeChannel(b'{"missing": []}\n', json.dumps({"status": status, **led}).encode() + b"\n")
    return fleet_of({"a": FakeHost("a", answer), "b": FakeHost("b")})


def on(*hosts: str) -> Any:
    return {"run": "r-1", "state": "running", "tasks": [{"host": host} for host in hosts]}


def test_all_hosts_of_a_run_are_no_part_of_it() -> None:
    refuse_part(fleet(on("a", "b", "a")))
    refuse_part(fleet(on("a")))


def test_a_run_with_further_hosts_is_refused_with_their_names() -> None:
    with pytest.raises(UsageError, match=r"^r-1: expected all of its hosts, found c\[1-2\] left out; give"):
        refuse_part(fleet(on("a", "c1", "c2")))


def test_a_run_that_none_of_the_hosts_knows_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a,b: expected a run named r, found none; give the same --include"):
        refuse_part(fleet(None))


def test_a_lead_that_is_out_of_reach_is_named() -> None:
    with pytest.raises(CannotStart, match="a: out of reach"):
        refuse_part(fleet_of({"a": FakeHost("a")}))
