"""Names become addresses side by side and within a time; a task with a public one is told of."""

import socket
import threading
from typing import Any, Dict, List, Sequence

import pytest

from launch.agent.network.resolver import Meaning, exposed, resolve
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.requested import run_plan, run_request

KNOWN: Dict[str, Meaning] = {"gpu01": ["10.0.0.1"], "far": ["10.0.0.2", "8.8.8.8"], "nowhere": "Name not known"}


def known(asked: Sequence[str], timeout_s: float) -> Dict[str, Meaning]:
    return {name: KNOWN[name] for name in asked}


def asked(*hosts: str, **changes: Any) -> RunRequest:
    """What the lead is asked to run, with a task on each host."""
    plan = run_plan(*(f"{host}:2222" for host in hosts))
    return run_request(**{"run_plan": plan, "allow_public": False, **changes})


def test_a_task_whose_name_means_a_public_address_is_named_with_it_and_with_what_to_do() -> None:
    (line,) = exposed(asked("gpu01", "far", "nowhere"), known)
    assert line == (
        "worker:1: expected an address that the internet cannot reach, found far, which is 8.8.8.8; "
        "give the task a private address, or set guard: nftables, or allow_public: true"
    )


@pytest.mark.parametrize("changes", [{"allow_public": True}, {"guard": "nftables"}])
def test_whoever_says_so_or_guards_the_ports_may_have_a_public_address(changes: Dict[str, Any]) -> None:
    assert exposed(asked("far", **changes), known) == []


def test_only_the_lead_asks() -> None:
    assert exposed(asked("far", run_plan=None), known) == []


def test_each_name_is_looked_up_once_and_what_is_unknown_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    names: List[str] = []

    def look_up(name: str, *_: Any, **__: Any) -> Any:
        names.append(name)
        if name != "gpu01":
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", ("10.0.0.1", 0))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    assert resolve(["gpu01", "nowhere", "gpu01"], 60) == {"gpu01": ["10.0.0.1"], "nowhere": "Name or service not known"}
    assert sorted(names) == ["gpu01", "nowhere"]


def test_a_name_whose_server_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: told.wait(60) and [])
    assert resolve(["slow"], 0.1) == {"slow": "no answer from the resolver within 0 s"}
    told.set()


def test_an_ip_address_is_its_own() -> None:
    assert resolve(["10.1.2.3", "::1"], 60) == {"10.1.2.3": ["10.1.2.3"], "::1": ["::1"]}
