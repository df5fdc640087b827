"""The pulse is a pipe: an agent without beats is known to be frozen; one that closes the pipe, or is gone, is not."""

import os
import signal
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest

from launch.agent.linux.processes import is_same
from launch.agent.service import keeping
from launch.agent.service.keeper import Pulse, moment
from launch.agent.service.keeping import END, PulseWatch
from launch.agent.state import process_records
from tests.support.agent.agents import LEAD, MEMBER, Agents
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "CHANCE_S", 0.05)


def watched(act: Callable[[Pulse], Any], patience: float) -> List[bool]:
    """Whether the keeper misses the pulse after what the agent does with its end; both ends are ours here."""
    found: List[bool] = []
    one, other = Pulse(), Pulse()
    one._in, other._in = os.dup(one._in), one._in  # the keeper closes its own copy
    other._out, unused = os.dup(one._out), other._out
    os.close(unused)
    watch = PulseWatch(patience, moment())

    def keep() -> None:
        one.watch(watch)
        found.append(watch.is_missing)

    watching = threading.Thread(target=keep)
    watching.start()
    other.mine()
    act(other)
    watching.join(20.0)
    return found


def test_a_pulse_that_beat_and_went_missing_is_noticed() -> None:
    assert watched(lambda mine: mine.write(100), patience=0.05) == [True]


def test_an_agent_that_closes_its_pulse_is_not_frozen() -> None:
    def close(mine: Pulse) -> None:
        mine.write(100)
        mine.write(END)

    assert watched(close, patience=100.0) == [False]


def test_the_end_of_the_pipe_is_the_end_of_an_agent() -> None:
    assert watched(lambda mine: os.close(mine._in), patience=0.0) == [False]


def test_a_keeper_that_does_not_read_does_not_block_its_agent() -> None:
    pulse = Pulse()
    unread = os.dup(pulse._out)
    pulse.mine()
    for _ in range((1 << 16) + 10):  # more than a pipe has room for
        pulse.write(100)
    for file in (unread, pulse._in):
        os.close(file)


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
