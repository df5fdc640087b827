"""What a member sends to the lead of the events on its host, and when it looks at its tasks."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

from launch.agent.protocol.messages import Event, GpuFailed, Stop, Tick
from launch.agent.service import agent
from launch.agent.service.member import Member
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.requested import RUN, run_request


class Link:
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: List[Event] = []

    def send(self, event: Event) -> None:
        self.sent.append(event)


def test_a_gpu_that_failed_is_sent_and_a_tick_is_not(tmp_path: Path) -> None:
    link, failed = Link(), GpuFailed(["worker:1"], "GPU 1 failed")

    async def scene() -> None:
        tasks: Any = None
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._link = link  # type: ignore[assignment]
        events: List[Event] = [Tick(), failed]
        for event in events:
            member._send(event)

    asyncio.run(scene())
    assert link.sent == [failed]


def test_other_events_neither_delay_a_tick_nor_are_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lead of 200 hosts receives hundreds of events in a second, and looks at its own tasks four times."""
    monkeypatch.setattr(agent, "POLL_S", 0.02)

    async def scene() -> List[bool]:
        tasks: Any = None
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._events.put_nowait(GpuFailed([], ""))
        found: List[bool] = []
        while found.count(True) < 2:
            found.append(isinstance(await member._next(), Tick))
            member._events.put_nowait(GpuFailed([], ""))
            await asyncio.sleep(0.001)
        return found

    found = asyncio.run(asyncio.wait_for(scene(), 10.0))
    assert found.count(True) == 2 and not any(found[:2])


def test_an_order_is_carried_out_without_waiting_for_a_tick(tmp_path: Path) -> None:
    class Tasks:
        def obey(self, order: Any, now: float) -> None:
            self.order = order

    tasks: Any = Tasks()

    async def scene() -> Event:
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._take(Stop("ps:0", 1.0, 0))
        return member._events.get_nowait()  # type: ignore[no-any-return]

    assert isinstance(asyncio.run(scene()), Tick) and tasks.order == Stop("ps:0", 1.0, 0)


def test_the_agent_of_a_member_loads_nothing_of_the_lead() -> None:
    """Most hosts of a run have a member, and starting 64 agents takes seconds of processors."""
    code = "import sys; from launch.agent.service import beginning, daemon, keeper, keeping; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], universal_newlines=True).split()
    lead = (
        "launch.agent.service.lead",
        "launch.agent.supervision.supervisor",
        "launch.agent.hooks",
        "launch.status.run",
    )
    assert "launch.agent.service.member" in loaded and not set(lead) & set(loaded)
