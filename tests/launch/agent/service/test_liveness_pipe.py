"""An agent without a pulse is known to be frozen; one that closes, or is gone, is not."""

import asyncio
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Callable, List

import pytest

from launch.agent.linux.processes import is_same
from launch.agent.service import keeper
from launch.agent.service.keeper import Pulse, granted_s, patience_s
from launch.agent.state import process_records
from tests.support.agent.agents import LEAD, MEMBER, Agents
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually, let_pass


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "CHANCE_S", 0.05)


def watched(act: Callable[[Pulse], Any], patience: float) -> List[bool]:
    """What the keeper makes of what the agent does with its end; both ends are ours here."""
    found: List[bool] = []
    one, other = Pulse(), Pulse()
    one._in, other._in = os.dup(one._in), one._in  # the keeper closes its own copy
    other._out, unused = os.dup(one._out), other._out
    os.close(unused)
    watching = threading.Thread(target=lambda: found.append(one.watch(patience)))
    watching.start()
    other.mine()
    act(other)
    watching.join(20.0)
    return found


def test_a_pulse_that_beat_and_went_missing_is_noticed() -> None:
    assert watched(lambda mine: mine._write(100), patience=0.05) == [True]


def test_a_beat_grants_the_next_one_a_part_of_the_patience() -> None:
    assert watched(lambda mine: mine._write(1), patience=100.0) == [True]  # else 100 s, which nobody waits for


def test_a_beat_grants_less_where_tasks_must_soon_be_gone() -> None:
    assert [granted_s(8.0, left) for left in (math.inf, 7.0, 1.0, -5.0)] == [
        8.0,
        7.0 - keeper.CHANCE_S,
        1.0,
        1.0,
    ]


@pytest.mark.parametrize(("must_go", "frozen"), [(True, True), (False, False)])
def test_a_suspension_counts_to_the_freeze_of_an_agent_whose_tasks_must_be_gone(
    must_go: bool, frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere other tasks have taken their places meanwhile; a lead's tasks keep theirs."""
    asleep_s = [0.0]
    monkeypatch.setattr(keeper, "since_boot", lambda: time.monotonic() + asleep_s[0])
    monkeypatch.setattr(keeper, "LOOK_S", 0.05)

    def freeze(mine: Pulse) -> None:
        left_s = 1000.0 if must_go else math.inf
        asyncio.run(first_beat(mine, left_s))
        let_pass(0.2)
        asleep_s[0] = 60.0
        let_pass(0.5)
        mine._write(0)  # too late for the keeper that has given it up

    assert watched(freeze, patience=20.0) == [frozen]


async def first_beat(mine: Pulse, left_s: float) -> None:
    """A beat without the last byte of an orderly end, as of an agent that freezes."""
    with pytest.MonkeyPatch.context() as patch:
        beating = asyncio.ensure_future(mine.beat(20.0, lambda: left_s))
        await asyncio.sleep(0)
        patch.setattr(Pulse, "_write", lambda *_: None)
        beating.cancel()
        await asyncio.wait([beating])


def test_an_agent_that_closes_is_not_frozen_however_long_its_end_takes() -> None:
    async def briefly(mine: Pulse) -> None:
        beating = asyncio.ensure_future(mine.beat(20.0, lambda: math.inf))
        await asyncio.sleep(0)
        beating.cancel()
        await asyncio.wait([beating])

    assert watched(lambda mine: asyncio.run(briefly(mine)), patience=20.0) == [False]


def test_before_the_first_beat_nothing_is_counted() -> None:
    assert watched(lambda mine: os.close(mine._in), patience=0.0) == [False]


def test_a_frozen_agent_is_killed_before_its_host_is_lost_but_a_busy_machine_has_seconds() -> None:
    assert patience_s(10.0) < 10.0 and patience_s(0.5) >= 5.0


def test_an_agent_that_is_stopped_is_killed_by_its_keeper_and_its_tasks_with_it(
    run: Callable[..., Agents], tmp_path: Path
) -> None:
    forever = "sleep 1000 & wait"
    agents = run({"worker:0@localhost": forever, "worker:1@127.0.0.1": forever}, lost_after_s=10.0)
    agents.up()
    agent, keeper = process_records.agent_of(agents.folder(MEMBER))
    os.kill(agent.pid, signal.SIGSTOP)
    eventually("the end of agent and keeper", lambda: not any(is_same(p.pid, p.start) for p in (agent, keeper)))
    assert "the agent is frozen" in (agents.folder(MEMBER).own / "agent.log").read_text()
    agents.tell({"do": "stop", "reason": "enough"})
    agents.kill(LEAD)
    agents.ended()
    assert not living_under(tmp_path)
