"""Names become addresses side by side and within a time; public ones are told of."""

import socket
import threading
from typing import Any, Dict, List

import pytest

from launch.agent.lookup import exposed, look_up, resolve

KNOWN = {"gpu01": ["10.0.0.1"], "far": ["10.0.0.2", "8.8.8.8"]}


def known(name: str) -> List[str]:
    if name not in KNOWN:
        raise socket.gaierror(-2, "Name or service not known")
    return KNOWN[name]


def plan(*hosts: str, **changes: Any) -> Dict[str, Any]:
    """What the lead is asked to run, with a task on each host."""
    tasks = [{"name": f"worker:{index}", "address": f"{host}:2222"} for index, host in enumerate(hosts)]
    return {"run_plan": {"tasks": tasks}, "allow_public": False, "guard": None, **changes}


def test_each_name_is_asked_for_once_and_an_unknown_one_has_no_address() -> None:
    asked: List[str] = []

    def asking(name: str) -> List[str]:
        asked.append(name)
        return known(name)

    found = resolve(["gpu01", "nowhere", "gpu01"], asking)
    assert found == {"gpu01": ["10.0.0.1"], "nowhere": []}
    assert sorted(asked) == ["gpu01", "nowhere"]


def test_a_name_whose_server_is_silent_is_given_up() -> None:
    told = threading.Event()
    found = resolve(["slow", "gpu01"], lambda name: known(name) if name == "gpu01" else [str(told.wait(60))], 0.2)
    told.set()
    assert found == {"slow": [], "gpu01": ["10.0.0.1"]}


def test_an_ip_address_is_its_own() -> None:
    assert (look_up("10.1.2.3"), look_up("::1")) == (["10.1.2.3"], ["::1"])


def test_a_task_whose_name_means_a_public_address_is_named_with_it_and_with_what_to_do() -> None:
    (line,) = exposed(plan("gpu01", "far", "nowhere"), known)
    assert line == (
        "worker:1: expected an address that the internet cannot reach, found far, which is 8.8.8.8; "
        "give it a private address, or set guard: nftables, or allow_public: true"
    )


@pytest.mark.parametrize("changes", [{"allow_public": True}, {"guard": "nftables"}])
def test_whoever_says_so_or_guards_the_ports_may_have_a_public_address(changes: Dict[str, Any]) -> None:
    assert exposed(plan("far", **changes), known) == []


def test_only_the_lead_asks() -> None:
    assert exposed({"allow_public": False}, known) == []
