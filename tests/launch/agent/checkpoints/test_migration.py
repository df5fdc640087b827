"""A checkpoint that is brought to the chief's host: behind the run's guard from the first moment on."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence

import pytest

from launch.agent.checkpoints import replication
from launch.agent.linux.sockets import can_listen, free_ports
from launch.agent.network import firewall
from launch.agent.wire.run_request import Wanted
from launch.agent.wire.verb_requests import HandoverRequest, RunReference


def request(port: int) -> HandoverRequest:
    run = "r-20260101-000000"
    return HandoverRequest(
        RunReference("r", "h1", "~/w", run), None, Wanted(run, 5), 1, f"h1:{port}", "a0", 5, "nftables", ("h1",)
    )


def test_the_guard_stands_before_the_port_is_open_and_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    was_free: List[bool] = []

    @contextmanager
    def standing(run: str, ports: Sequence[int], names: Optional[Sequence[str]]) -> Iterator[None]:
        assert (run, ports, names) == ("r-20260101-000000", [port], ("h1",))
        was_free.append(can_listen(port))
        yield
        was_free.append(can_listen(port))

    told: List[Dict[str, Any]] = []
    monkeypatch.setattr(firewall, "standing", standing)
    monkeypatch.setattr(replication, "CALL_S", 0.1)
    replication.take(request(port), told.append)
    assert was_free == [True, True] and told[0] == {"listening": True} and "has not reached" in told[1]["error"]


def test_without_its_guard_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firewall, "ways", list)
    monkeypatch.setattr(firewall, "peers", lambda names: (set(), set()))
    told: List[Dict[str, Any]] = []
    replication.take(request(free_ports(1)[0]), told.append)
    assert len(told) == 1 and told[0]["error"].startswith("guard: nftables is not possible here")
